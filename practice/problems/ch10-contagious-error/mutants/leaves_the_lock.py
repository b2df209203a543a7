# Frees the pages of a failed request, and leaves its prefix locked.
# caught by: edge
class Scheduler:
    def _end(self, request: Request, reason: FinishReason, error: Exception | None = None) -> None:
        """End a request and free what it holds; does nothing if it has ended."""
        if request.finish_reason is not None:
            return
        holds = request.state is not State.WAITING
        request.end(reason, error)
        for requests in (self._prefill.waiting, self._prefill.running, self._decode.running):
            requests.pop(request.uid, None)
        if holds:
            # KV of a pass that failed may be wrong: nobody else shall read it.
            if reason == "error":
                self._cache._allocator.free(self._cache._own_pages(request.req))
            else:
                self._cache.free(request.req)
            self._table.free(request.req.table_idx)
        self._record("finish", uid=request.uid, reason=reason)

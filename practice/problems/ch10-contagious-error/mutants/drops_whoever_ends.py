# Keeps no KV of anyone who has ended.
# caught by: basic
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
            self._cache.drop(request.req)
            self._table.free(request.req.table_idx)
        self._record("finish", uid=request.uid, reason=reason)

# Leaves it among those whose prompts are computed.
# caught by: edge
class Scheduler:
    def _retract(self, request: Request) -> None:
        """Take a running request's row and pages; it goes on later, from what the cache kept."""
        self._record("retract", uid=request.uid)
        self._prefill.estimate.failed()
        self._prefill.take_back(request)
        request.num_retractions += 1
        request.move(State.WAITING)
        for requests in (self._decode.running,):
            requests.pop(request.uid, None)
        self._cache.free(request.req)
        self._table.free(request.req.table_idx)

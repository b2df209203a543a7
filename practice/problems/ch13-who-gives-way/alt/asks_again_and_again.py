# Looks for the oldest that lacks a page, lets the youngest give way, and begins again.
class Scheduler:
    def _grow(self):
        while True:
            by_age = sorted(self._running(), key=lambda request: request.number)
            if all(self._cache.grow(request.req) for request in by_age):
                return
            self._retract(max(by_age, key=lambda request: request.number))

    def _retract(self, request):
        self._record("retract", uid=request.uid)
        self._prefill.running.pop(request.uid, None)
        self._decode.running.pop(request.uid, None)
        self._table.free(request.req.table_idx)
        self._cache.free(request.req)
        request.state = State.WAITING
        request.num_retractions = request.num_retractions + 1
        self._prefill.take_back(request)
        self._prefill.estimate.failed()

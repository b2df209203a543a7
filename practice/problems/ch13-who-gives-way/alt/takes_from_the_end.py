# Two ends of a line that come towards each other; each retraction undoes an admission.
class Scheduler:
    def _grow(self):
        line = list(self._running())
        line.sort(key=lambda request: request.number)
        served = 0
        while served < len(line):
            if self._cache.grow(line[served].req):
                served += 1
            else:
                self._retract(line[-1])
                del line[-1]

    def _retract(self, request):
        self._record("retract", uid=request.uid)
        uid, req = request.uid, request.req
        if request.state is State.PREFILL:
            del self._prefill.running[uid]
        else:
            del self._decode.running[uid]
        self._cache.free(req)
        self._table.free(req.table_idx)
        request.move(State.WAITING)
        request.num_retractions += 1
        self._prefill.take_back(request)
        self._prefill.estimate.failed()

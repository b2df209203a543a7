# Releases those who only wait.
# caught by: edge
class Scheduler:
    def _end(self, request: Request, reason: FinishReason, error: Exception | None = None) -> None:
        """End a request; what it holds is free as soon as no pass in flight can touch it.

        Does nothing if it has ended.
        """
        if request.finish_reason is not None:
            return
        holds = request.is_running
        request.end(reason, error)
        for requests in (self._prefill.waiting, self._prefill.running, self._decode.running):
            requests.pop(request.uid, None)
        if not self._is_in_flight(request):
            self._release(request)
        self._record("finish", uid=request.uid, reason=reason)

# Ends it instead of letting it wait.
# caught by: sample
class Scheduler:
    def _retract(self, request: Request) -> None:
        """Take a running request's row and pages; it goes on later, from what the cache kept."""
        self._record("retract", uid=request.uid)
        self._prefill.estimate.failed()
        self._end(request, "abort")

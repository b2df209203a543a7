# Forgets all passes in flight when one fails.
# caught by: edge
class Scheduler:
    def _take_over(self) -> None:
        """Wait for the oldest pass in flight, and take over its tokens; if it failed, all end."""
        launch = self._launches[0]
        failed = launch.requests  # those who end so may have ended otherwise while it was computed
        try:
            tokens, logprobs = launch.output.result().read()
        except Exception as error:
            clear_frames(error.__traceback__)  # its tensors must not live as long as the error
            self._record_end(launch, "failure", error=repr(error))
            for request in launch.requests:
                self._end(request, "error", error)
            for one in list(self._launches)[1:]:
                one.output.exception()
                self._launches.remove(one)
        else:
            ids = {one.uid: n for one, n in zip(launch.sampled, tokens.tolist(), strict=True)}
            failed = [request for request in launch.sampled if ids[request.uid] < 0]
            self._record_end(launch, "result", tokens=ids)
            for request, *result in zip(launch.sampled, tokens[:, None], logprobs, strict=True):
                if request.finish_reason is None:
                    self._accept(request, *result)
        self._launches.popleft()
        for request in launch.requests:
            if request.finish_reason is not None and not self._is_in_flight(request):
                self._release(request, request in failed)

# Moves the lengths on when the token arrives.
# caught by: sample
class Scheduler:
    def _launch(self, requests: list[Request]) -> None:
        """Have a batch computed; from now on its requests are as far as it will bring them."""
        reqs = [copy(request.req) for request in requests]  # which the pass reads later
        is_decode = all(req.extend_len == 1 and not req.is_chunk for req in reqs)
        batch = Batch(reqs, "decode" if is_decode else "prefill")
        lengths = {req.uid: (req.cached_len, req.device_len) for req in reqs}
        self._record("launch", phase=batch.phase, lengths=lengths)
        sampled = [request for request in requests if not request.req.is_chunk]
        output = self._worker.submit(partial(self._compute, batch))
        self._launches.append(Launch(requests, sampled, output, self.trace))

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
        else:
            ids = {one.uid: n for one, n in zip(launch.sampled, tokens.tolist(), strict=True)}
            failed = [request for request in launch.sampled if ids[request.uid] < 0]
            self._record_end(launch, "result", tokens=ids)
            for request, *result in zip(launch.sampled, tokens[:, None], logprobs, strict=True):
                if request.finish_reason is None:
                    self._accept(request, *result)
        self._launches.popleft()
        for request in launch.requests:
            request.req.complete_one()
        for request in launch.requests:
            if request.finish_reason is not None and not self._is_in_flight(request):
                self._release(request, request in failed)

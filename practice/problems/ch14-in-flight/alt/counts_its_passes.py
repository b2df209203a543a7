# Looks for those who can go among all who have ended, pass by pass; the tokens come one by one.
class Scheduler:
    def _launch(self, requests):
        copies, lengths, sampled = [], {}, []
        phase = "decode"
        for request in requests:
            req = copy(request.req)
            copies.append(req)
            lengths[req.uid] = req.cached_len, req.device_len
            if req.extend_len > 1 or req.is_chunk:
                phase = "prefill"
            if not req.is_chunk:
                sampled.append(request)
        batch = Batch(copies, phase)
        self._record("launch", phase=phase, lengths=lengths)
        for request in requests:
            request.req.complete_one()
        output = self._worker.submit(lambda: self._compute(batch))
        self._launches.append(Launch(requests, sampled, output, self.trace))

    def _take_over(self):
        launch = self._launches[0]
        error = launch.output.exception()
        if error is not None:
            self._record_end(launch, "failure", error=repr(error))
            for request in launch.requests:
                self._end(request, "error", error)
        else:
            tokens, logprobs = launch.output.result().read()
            pairs = zip(launch.sampled, tokens.tolist(), strict=True)
            self._record_end(launch, "result", tokens={r.uid: token for r, token in pairs})
            for number, request in enumerate(launch.sampled):
                if request.finish_reason is None:
                    self._accept(request, tokens[number : number + 1], logprobs[number])
        del self._launches[0]
        still = {id(request) for other in self._launches for request in other.requests}
        for request in launch.requests:
            if request.finish_reason is not None and id(request) not in still:
                self._release(request, failed=error is not None)

    def _end(self, request, reason, error=None):
        if request.finish_reason is None:
            uid = request.uid
            self._prefill.waiting.pop(uid, None)
            ran = self._prefill.running.pop(uid, None) or self._decode.running.pop(uid, None)
            request.end(reason, error)
            self._record("finish", uid=uid, reason=reason)
            if ran is not None and not self._is_in_flight(request):
                self._release(request)

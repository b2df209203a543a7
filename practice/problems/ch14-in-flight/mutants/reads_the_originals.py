# Gives the pass the requests themselves, which have moved on when it is computed.
# caught by: sample
class Scheduler:
    def _launch(self, requests: list[Request]) -> None:
        """Have a batch computed; from now on its requests are as far as it will bring them."""
        reqs = [request.req for request in requests]  # which the pass reads later
        is_decode = all(req.extend_len == 1 and not req.is_chunk for req in reqs)
        batch = Batch(reqs, "decode" if is_decode else "prefill")
        lengths = {req.uid: (req.cached_len, req.device_len) for req in reqs}
        self._record("launch", phase=batch.phase, lengths=lengths)
        sampled = [request for request in requests if not request.req.is_chunk]
        output = self._worker.submit(partial(self._compute, batch))
        self._launches.append(Launch(requests, sampled, output, self.trace))
        for request in requests:
            request.req.complete_one()

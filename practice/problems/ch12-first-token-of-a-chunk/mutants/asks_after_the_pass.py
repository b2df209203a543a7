# Asks who is half-way when the lengths have moved on.
# caught by: edge
class Scheduler:
    def _run(self, requests: list[Request]) -> None:
        """Compute a batch and take over its tokens; if that fails, its requests end."""
        try:
            batch, rows = self._prepare_batch([request.req for request in requests])
            lengths = {req.uid: (req.cached_len, req.device_len) for req in batch.reqs}
            self._record("launch", phase=batch.phase, lengths=lengths)
            output = self._forward(batch, rows)
            next_tokens = output.next_tokens.cpu()
        except Exception as error:
            clear_frames(error.__traceback__)  # its tensors must not live as long as the error
            for request in requests:
                self._end(request, "error", error)
            return
        tokens = next_tokens.tolist()
        sampled = [request for request in requests if not request.req.is_chunk]
        self._record("result", tokens=dict(zip([r.uid for r in sampled], tokens, strict=True)))
        logprobs = output.logprobs.read(tokens) if output.logprobs else [None] * len(tokens)
        for request, token, logprob in zip(sampled, next_tokens[:, None], logprobs, strict=True):
            self._accept(request, token, logprob)

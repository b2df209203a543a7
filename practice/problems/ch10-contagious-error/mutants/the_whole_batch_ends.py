# Ends everyone in the batch when one row has no scores.
# caught by: edge
class Scheduler:
    def _run(self, requests: list[Request]) -> None:
        """Compute a batch and take over its tokens; if that fails, its requests end."""
        batch, rows = self._prepare_batch([request.req for request in requests])
        lengths = {req.uid: (req.cached_len, req.device_len) for req in batch.reqs}
        self._record("launch", phase=batch.phase, lengths=lengths)
        try:
            output = self._forward(batch, rows)
            next_tokens = output.next_tokens.cpu()
        except Exception as error:
            for request in requests:
                self._end(request, "error", error)
            return
        if (next_tokens < 0).any():
            next_tokens = torch.full_like(next_tokens, -1)
        tokens = next_tokens.tolist()
        self._record("result", tokens=dict(zip([r.uid for r in requests], tokens, strict=True)))
        logprobs = output.logprobs.read(tokens) if output.logprobs else [None] * len(tokens)
        for request, token, logprob in zip(requests, next_tokens.split(1), logprobs, strict=True):
            self._accept(request, token, logprob)

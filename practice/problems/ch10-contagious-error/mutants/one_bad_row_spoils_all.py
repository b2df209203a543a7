# Hands the prompts over only when every row of the batch has scores.
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
        tokens = next_tokens.tolist()
        self._all_good = min(tokens) >= 0
        self._record("result", tokens=dict(zip([r.uid for r in requests], tokens, strict=True)))
        logprobs = output.logprobs.read(tokens) if output.logprobs else [None] * len(tokens)
        for request, token, logprob in zip(requests, next_tokens.split(1), logprobs, strict=True):
            self._accept(request, token, logprob)

    def _accept(self, request: Request, token: torch.Tensor, logprob: TokenLogprob | None) -> None:
        """Take over a sampled token, int32 `[1]` on the CPU, and see what it makes of its request.

        A row without scores ends alone: its neighbours were computed beside it, not with it.
        """
        if token < 0:
            self._end(request, "error", RuntimeError("NaN or infinite scores: check the weights"))
            return
        request.req.append_host(token)
        request.token_ids.append(int(token))
        if logprob is not None:
            request.logprobs.append(logprob)
        reason = finish_reason(request.req, self._eos_ids)
        if reason is not None:
            self._end(request, reason)
        elif request.state is State.PREFILL:
            if self._all_good:
                self._cache.cache_req(request.req)
            self._decode.running[request.uid] = request
            del self._prefill.running[request.uid]
            request.move(State.DECODE)

# Hands the prompt over as soon as the pass is done, before it is known what came of it.
# caught by: sample
class Scheduler:
    def _accept(self, request: Request, token: torch.Tensor, logprob: TokenLogprob | None) -> None:
        """Take over a sampled token, int32 `[1]` on the CPU, and see what it makes of its request.

        A row without scores ends alone: its neighbours were computed beside it, not with it.
        """
        is_new = request.state is State.PREFILL
        if is_new:
            self._cache.cache_req(request.req)
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
        elif is_new:
            self._decode.running[request.uid] = request
            del self._prefill.running[request.uid]
            request.move(State.DECODE)

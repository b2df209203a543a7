# Hands nothing over after the prefill, only at the end.
# caught by: basic
class Scheduler:
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
            self._decode.running[request.uid] = request
            del self._prefill.running[request.uid]
            request.move(State.DECODE)

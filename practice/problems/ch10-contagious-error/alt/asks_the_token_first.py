# Hands the prompt over at the same place as before, but only where there are scores.
class Scheduler:
    def _accept(self, request, token, logprob):
        is_new = request.state is State.PREFILL
        if is_new and token >= 0:
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

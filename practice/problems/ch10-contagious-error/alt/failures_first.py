# Sorts the rows without scores out before any token is taken over.
class Scheduler:
    def _run(self, requests):
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
        self._record("result", tokens={r.uid: t for r, t in zip(requests, tokens, strict=True)})
        logprobs = output.logprobs.read(tokens) if output.logprobs else [None] * len(tokens)
        taken = list(zip(requests, next_tokens.split(1), logprobs, strict=True))
        for request, token, _ in taken:
            if int(token) < 0:
                self._end(request, "error", RuntimeError("no scores"))
        for one in taken:
            if one[0].error is None:
                self._accept(*one)

    def _accept(self, request, token, logprob):
        request.req.append_host(token)
        request.token_ids.append(int(token))
        request.logprobs.extend([] if logprob is None else [logprob])
        reason = finish_reason(request.req, self._eos_ids)
        if reason is not None:
            self._end(request, reason)
            return
        if request.state is State.PREFILL:
            request.move(State.DECODE)
            self._cache.cache_req(request.req)
            self._decode.running[request.uid] = self._prefill.running.pop(request.uid)

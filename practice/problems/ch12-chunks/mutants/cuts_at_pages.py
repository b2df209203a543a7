# Cuts at the last whole page, so that a token or two are not handed out.
# caught by: sample
class PrefillManager:
    def schedule(self, num_tokens):
        prompts = RadixTree(self._page_size)
        chosen = []
        for request in [*self.running.values(), *self.waiting.values()]:
            ids = request.input_ids
            if request.state is State.WAITING:
                shared = prompts.match(ids[:-1]).cached_len
                if shared >= MIN_SHARED_TOKENS + self._cache.num_cached_tokens(ids[:shared]):
                    continue
                if not self._admit(request):
                    break
            req = request.req
            end = req.cached_len + num_tokens
            if end < len(ids):
                end = max(req.cached_len + 1, end // self._page_size * self._page_size)
            req.device_len = min(len(ids), end)
            num_tokens -= req.extend_len
            chosen.append(request)
            if not num_tokens or req.device_len < len(ids):
                break
            prompts.insert(ids, [0] * (len(ids) // self._page_size))
        return chosen

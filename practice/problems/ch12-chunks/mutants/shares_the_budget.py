# Deals the budget out in equal shares.
# caught by: sample
class PrefillManager:
    def schedule(self, num_tokens):
        prompts = RadixTree(self._page_size)
        chosen = []
        count = len(self.running) + len(self.waiting)
        share = max(1, num_tokens // max(1, count))
        for request in [*self.running.values(), *self.waiting.values()]:
            ids = request.input_ids
            if request.state is State.WAITING:
                shared = prompts.match(ids[:-1]).cached_len
                if shared >= MIN_SHARED_TOKENS + self._cache.num_cached_tokens(ids[:shared]):
                    continue
                if not self._admit(request):
                    break
            req = request.req
            req.device_len = min(len(ids), req.cached_len + min(share, num_tokens))
            num_tokens -= req.extend_len
            chosen.append(request)
            if not num_tokens:
                break
            prompts.insert(ids, [0] * (len(ids) // self._page_size))
        return chosen

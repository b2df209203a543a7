# Stops at the one that stands back, as at one that does not fit.
# caught by: sample
class PrefillManager:
    def schedule(self):
        prompts = RadixTree(self._page_size)
        for request in list(self.waiting.values()):
            ids = request.input_ids
            shared = prompts.match(ids[:-1]).cached_len
            if shared >= MIN_SHARED_TOKENS + self._cache.num_cached_tokens(ids[:shared]):
                break
            if not self._admit(request):
                break
            prompts.insert(ids, [0] * (len(ids) // self._page_size))
        return list(self.running.values())

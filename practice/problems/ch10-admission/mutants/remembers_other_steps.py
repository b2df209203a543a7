# Keeps the prompts of earlier steps, whose KV may be gone by now.
# caught by: edge
class PrefillManager:
    def schedule(self):
        if not hasattr(self, "_prompts"):
            self._prompts = RadixTree(self._page_size)
        for request in list(self.waiting.values()):
            ids = request.input_ids
            shared = self._prompts.match(ids[:-1]).cached_len
            if shared >= MIN_SHARED_TOKENS + self._cache.num_cached_tokens(ids[:shared]):
                continue
            if not self._admit(request):
                break
            self._prompts.insert(ids, [0] * (len(ids) // self._page_size))
        return list(self.running.values())

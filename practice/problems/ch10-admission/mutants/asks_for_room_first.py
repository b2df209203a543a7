# Stops at one that does not fit though it would have stood back.
# caught by: edge
class PrefillManager:
    def schedule(self):
        prompts = RadixTree(self._page_size)
        for request in list(self.waiting.values()):
            ids = request.input_ids
            pages = -(-(len(ids) + request.output_len - 1) // self._page_size)
            pages -= self._cache.num_cached_tokens(ids[:-1]) // self._page_size
            if pages > self._cache._allocator.num_free + self._cache._tree.num_evictable:
                break
            shared = prompts.match(ids[:-1]).cached_len
            if shared >= MIN_SHARED_TOKENS + self._cache.num_cached_tokens(ids[:shared]):
                continue
            if not self._admit(request):
                break
            prompts.insert(ids, [0] * (len(ids) // self._page_size))
        return list(self.running.values())

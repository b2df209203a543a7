# Remembers every beginning in whole pages of those let in, and asks the cache once, for all.
class PrefillManager:
    def schedule(self):
        size, begun = self._page_size, set()
        queue = list(self.waiting.values())
        while queue:
            request = queue.pop(0)
            ids = request.input_ids
            ends = range(size, len(ids), size)
            shared = max((end for end in ends if tuple(ids[:end]) in begun), default=0)
            if shared - self._cache.num_cached_tokens(ids) < MIN_SHARED_TOKENS:
                if not self._admit(request):
                    queue.clear()
                begun.update(tuple(ids[:end]) for end in range(size, len(ids) + 1, size))
        return list(self.running.values())

# Asks what is cached before anyone is let in, though letting in evicts.
# caught by: edge
class PrefillManager:
    def schedule(self):
        prompts = RadixTree(self._page_size)
        waiting = list(self.waiting.values())
        cached = [self._cache.num_cached_tokens(request.input_ids) for request in waiting]
        for request, known in zip(waiting, cached):
            ids = request.input_ids
            shared = prompts.match(ids[:-1]).cached_len
            if shared >= MIN_SHARED_TOKENS + min(shared, known):
                continue
            if not self._admit(request):
                break
            prompts.insert(ids, [0] * (len(ids) // self._page_size))
        return list(self.running.values())

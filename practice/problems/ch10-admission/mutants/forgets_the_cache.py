# Stands back for what is cached already, as if it were computed again.
# caught by: edge
class PrefillManager:
    def schedule(self):
        prompts = RadixTree(self._page_size)
        for request in list(self.waiting.values()):
            ids = request.input_ids
            if prompts.match(ids[:-1]).cached_len >= MIN_SHARED_TOKENS:
                continue
            if not self._admit(request):
                break
            prompts.insert(ids, [0] * (len(ids) // self._page_size))
        return list(self.running.values())

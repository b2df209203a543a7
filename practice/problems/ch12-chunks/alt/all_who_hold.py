# Whoever holds a row after the loop has been given tokens: only the last one can be cut.
class PrefillManager:
    def schedule(self, num_tokens):
        size, begun, left = self._page_size, set(), num_tokens
        queue = [*self.running.values(), *self.waiting.values()]
        while queue and left:
            request = queue.pop(0)
            ids = request.input_ids
            if request.uid in self.waiting:
                ends = range(size, len(ids), size)
                shared = max((end for end in ends if tuple(ids[:end]) in begun), default=0)
                if shared - self._cache.num_cached_tokens(ids[:shared]) >= MIN_SHARED_TOKENS:
                    continue
                if not self._admit(request):
                    break
            piece = min(left, len(ids) - request.req.cached_len)
            request.req.device_len = request.req.cached_len + piece
            left -= piece
            begun.update(tuple(ids[:end]) for end in range(size, len(ids) + 1, size))
        return list(self.running.values())

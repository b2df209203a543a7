# First those who have begun, then the line; compares with each prompt of the step, page by page.
class PrefillManager:
    def schedule(self, num_tokens):
        step = []
        for request in list(self.running.values()):
            if num_tokens > 0:
                num_tokens -= self._give(request, num_tokens)
                step.append(request)
        for request in list(self.waiting.values()):
            if num_tokens == 0:
                break
            if any(self._is_worth_waiting(request.input_ids, one.input_ids) for one in step):
                continue
            if not self._admit(request):
                break
            num_tokens -= self._give(request, num_tokens)
            step.append(request)
        return step

    def _give(self, request, num_tokens):
        req = request.req
        lacks = len(request.input_ids) - req.cached_len
        given = lacks if lacks < num_tokens else num_tokens
        req.device_len = req.cached_len + given
        return given

    def _is_worth_waiting(self, ids, other):
        size, common = self._page_size, 0
        while common + size < len(ids) and ids[: common + size] == other[: common + size]:
            common += size
        return common - self._cache.num_cached_tokens(ids[:common]) >= MIN_SHARED_TOKENS

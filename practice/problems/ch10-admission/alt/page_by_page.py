# Keeps no tree: compares with each prompt that was let in, page by page.
class PrefillManager:
    def schedule(self):
        prompts = []
        for uid in list(self.waiting):
            request = self.waiting[uid]
            if any(self._is_worth_waiting(request.input_ids, other) for other in prompts):
                continue
            if not self._admit(request):
                break
            prompts.append(request.input_ids)
        return [*self.running.values()]

    def _is_worth_waiting(self, ids, other):
        size, common = self._page_size, 0
        while common + size < len(ids) and ids[: common + size] == other[: common + size]:
            common += size
        return common - self._cache.num_cached_tokens(ids[:common]) >= MIN_SHARED_TOKENS

    def _admit(self, request):
        if self._table.num_free_rows == 0:
            return False
        ids, output, params = request.input_ids, request.output_len, request.sampling_params
        row = self._table.allocate()
        handle = self._cache.reserve(row, ids, len(ids) + output - 1)
        if handle is None:
            self._table.free(row)
        else:
            prompt = torch.tensor(ids, dtype=torch.int32)
            self._table.token_pool[row][: len(ids)] = prompt
            hit = request.num_cached_tokens = handle.cached_len
            request.req = Req(prompt, row, hit, output, request.uid, params, handle)
            self.running[request.uid] = self.waiting.pop(request.uid)
            request.move(State.PREFILL)
        return handle is not None

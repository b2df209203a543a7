# Writes the prompt first, and behind it what was said since; finds the place in the line by steps.
class PrefillManager:
    def _admit(self, request, ids):
        if not self._table.num_free_rows:
            return False
        row = self._table.allocate()
        expected = self.estimate.expected_len(request)
        handle = self._cache.reserve(row, ids, len(request.input_ids) + expected - 1)
        if handle is None:
            self._table.free(row)
            return False
        prompt_len, pool = len(request.input_ids), self._table.token_pool
        pool[row, :prompt_len] = torch.tensor(ids[:prompt_len], dtype=torch.int32)
        pool[row, prompt_len : len(ids)] = torch.tensor(ids[prompt_len:], dtype=torch.int32)
        if request.num_retractions:
            request.req.table_idx = row
            request.req.cached_len = handle.cached_len
            request.req.cache_handle = handle
        else:
            request.num_cached_tokens = handle.cached_len
            request.req = Req(
                input_ids=torch.tensor(ids, dtype=torch.int32),
                table_idx=row,
                cached_len=handle.cached_len,
                output_len=request.output_len,
                uid=request.uid,
                sampling_params=request.sampling_params,
                cache_handle=handle,
            )
        request.move(State.PREFILL)
        del self.waiting[request.uid]
        self.running[request.uid] = request
        for other in self.waiting.values():
            other.num_overtaken += int(request.number > other.number)
        return True

    def take_back(self, request):
        earlier = {u: one for u, one in self.waiting.items() if one.number < request.number}
        later = {u: one for u, one in self.waiting.items() if one.number > request.number}
        self.waiting = {**earlier, request.uid: request, **later}

# Writes the known tokens as a tensor of its own, made from the list.
class PrefillManager:
    def _admit(self, request, ids):
        if self._table.num_free_rows == 0:
            return False
        row = self._table.allocate()
        length = len(request.input_ids) + self.estimate.expected_len(request) - 1
        handle = self._cache.reserve(row, ids, length)
        if handle is None:
            self._table.free(row)
            return False
        known = torch.tensor(ids, dtype=torch.int32)
        self._table.token_pool[row][: len(ids)] = known
        if request.num_retractions == 0:
            hit = request.num_cached_tokens = handle.cached_len
            output, params = request.output_len, request.sampling_params
            request.req = Req(known, row, hit, output, request.uid, params, handle)
        request.req.table_idx = row
        request.req.cached_len = handle.cached_len
        request.req.cache_handle = handle
        for other in self.waiting.values():
            if other.number < request.number:
                other.num_overtaken += 1
        self.running[request.uid] = self.waiting.pop(request.uid)
        request.move(State.PREFILL)
        return True

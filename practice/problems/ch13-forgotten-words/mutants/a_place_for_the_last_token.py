# Makes room for the last token, which needs none.
# caught by: sample
class PrefillManager:
    def _admit(self, request: Request, ids: list[int]) -> bool:
        """Give a request, with its known tokens, a row and pages, unless it does not fit."""
        if not self._table.num_free_rows:
            return False
        table_idx = self._table.allocate()
        # The last token is only ever an output: it needs no place.
        num_tokens = len(request.input_ids) + self.estimate.expected_len(request)
        handle = self._cache.reserve(table_idx, ids, num_tokens)
        if handle is None:
            self._table.free(table_idx)
            return False
        if request.num_retractions:
            req = request.req
            req.table_idx, req.cached_len, req.cache_handle = table_idx, handle.cached_len, handle
        else:
            request.req = Req(
                input_ids=torch.tensor(ids, dtype=torch.int32),
                table_idx=table_idx,
                cached_len=handle.cached_len,
                output_len=request.output_len,
                uid=request.uid,
                sampling_params=request.sampling_params,
                cache_handle=handle,
            )
            request.num_cached_tokens = handle.cached_len
        self._table.token_pool[table_idx, : len(ids)] = request.req.input_ids
        request.move(State.PREFILL)
        self.running[request.uid] = request
        del self.waiting[request.uid]
        for other in self.waiting.values():
            other.num_overtaken += other.number < request.number
        return True

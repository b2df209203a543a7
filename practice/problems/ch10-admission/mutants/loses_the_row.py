# Takes a row, finds no pages, and does not give the row back.
# caught by: edge
class PrefillManager:
    def _admit(self, request: Request) -> bool:
        """Give a request its row and pages, unless it does not fit beside the others."""
        if not self._table.num_free_rows:
            return False
        table_idx = self._table.allocate()
        # The last token is only ever an output: it needs no place.
        num_tokens = len(request.input_ids) + request.output_len - 1
        handle = self._cache.reserve(table_idx, request.input_ids, num_tokens)
        if handle is None:
            return False
        request.req = Req(
            input_ids=torch.tensor(request.input_ids, dtype=torch.int32),
            table_idx=table_idx,
            cached_len=handle.cached_len,
            output_len=request.output_len,
            uid=request.uid,
            sampling_params=request.sampling_params,
            cache_handle=handle,
        )
        request.num_cached_tokens = handle.cached_len
        self._table.token_pool[table_idx, : len(request.input_ids)] = request.req.input_ids
        request.move(State.PREFILL)
        self.running[request.uid] = request
        del self.waiting[request.uid]
        return True

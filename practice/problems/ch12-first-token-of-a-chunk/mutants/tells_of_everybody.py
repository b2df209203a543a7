# Tells the sampler of those who are half-way, too.
# caught by: edge
class Scheduler:
    def _prepare_batch(self, reqs: list[Req]) -> tuple[Batch, torch.Tensor]:
        """The tokens that have no KV yet, end to end, and for each the row of its request."""
        is_decode = all(req.extend_len == 1 and not req.is_chunk for req in reqs)
        batch = Batch(reqs, "decode" if is_decode else "prefill")
        device = self.engine.config.device
        lengths = torch.tensor([req.extend_len for req in reqs])
        rows = torch.tensor([req.table_idx for req in reqs]).repeat_interleave(lengths).to(device)
        positions = [torch.arange(req.cached_len, req.device_len) for req in reqs]
        batch.positions = torch.cat(positions).to(device)
        batch.out_loc = self._table.page_table[rows, batch.positions]
        yields_token = torch.tensor([not req.is_chunk for req in reqs])
        batch.logits_rows = (lengths.cumsum(0) - 1)[yields_token].to(device)
        size, seed = self.engine.model_config.vocab_size, self.engine.config.seed
        pool = self._table.token_pool
        batch.sampling_args = make_args(reqs, pool, size, seed, self._eos_ids)
        return batch, rows

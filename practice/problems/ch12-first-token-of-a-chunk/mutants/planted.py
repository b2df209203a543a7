# Samples for everybody, and throws the tokens of those who are half-way away too late.
# caught by: sample
class Scheduler:
    def _run(self, requests: list[Request]) -> None:
        """Compute a batch and take over its tokens; if that fails, its requests end."""
        is_last = [not request.req.is_chunk for request in requests]
        try:
            batch, rows = self._prepare_batch([request.req for request in requests])
            lengths = {req.uid: (req.cached_len, req.device_len) for req in batch.reqs}
            self._record("launch", phase=batch.phase, lengths=lengths)
            output = self._forward(batch, rows)
            next_tokens = output.next_tokens.cpu()
        except Exception as error:
            clear_frames(error.__traceback__)  # its tensors must not live as long as the error
            for request in requests:
                self._end(request, "error", error)
            return
        tokens = next_tokens.tolist()
        got = zip(requests, tokens, is_last, strict=True)
        self._record("result", tokens={one.uid: token for one, token, last in got if last})
        logprobs = output.logprobs.read(tokens) if output.logprobs else [None] * len(tokens)
        rows = zip(requests, next_tokens.split(1), logprobs, is_last, strict=True)
        for request, token, logprob, last in rows:
            if last:
                self._accept(request, token, logprob)

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
        batch.logits_rows = (lengths.cumsum(0) - 1).to(device)
        size, seed = self.engine.model_config.vocab_size, self.engine.config.seed
        pool = self._table.token_pool
        batch.sampling_args = make_args(reqs, pool, size, seed, self._eos_ids)
        return batch, rows

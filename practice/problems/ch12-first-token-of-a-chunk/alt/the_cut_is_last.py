# Whoever is half-way is the last of the batch, so the rows before it are those wanted.
class Scheduler:
    def _run(self, requests: list[Request]) -> None:
        """Compute a batch and take over its tokens; if that fails, its requests end."""
        sampled = requests[:-1] if requests[-1].req.is_chunk else requests
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
        self._record("result", tokens=dict(zip([r.uid for r in sampled], tokens, strict=True)))
        logprobs = output.logprobs.read(tokens) if output.logprobs else [None] * len(tokens)
        for request, token, logprob in zip(sampled, next_tokens[:, None], logprobs, strict=True):
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
        sampled = [req for req in reqs if req.device_len == len(req.input_ids)]
        batch.logits_rows = (lengths.cumsum(0) - 1)[: len(sampled)].to(device)
        size, seed = self.engine.model_config.vocab_size, self.engine.config.seed
        pool = self._table.token_pool
        batch.sampling_args = make_args(sampled, pool, size, seed, self._eos_ids)
        return batch, rows

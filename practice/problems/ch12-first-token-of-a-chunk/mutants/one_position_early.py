# Writes the sampled token over the newest one.
# caught by: sample
class Scheduler:
    def _forward(self, batch: Batch, rows: torch.Tensor) -> ForwardOutput:
        """Launch a pass; its tokens become the next inputs without leaving the device."""
        batch.input_ids = self._table.token_pool[rows, batch.positions]
        output = self.engine.forward_batch(batch)
        last = batch.logits_rows
        self._table.token_pool[rows[last], batch.positions[last]] = output.next_tokens
        for req in batch.reqs:
            req.complete_one()
        return output

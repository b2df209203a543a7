# Admits a prompt that is a hit in full, although the logits need one computed token.
# caught by: edge
import torch


class Req:
    def __post_init__(self):
        prompt_len = len(self.input_ids)
        self.device_len = prompt_len
        self.max_device_len = prompt_len + self.output_len
        assert 0 <= self.cached_len <= self.device_len <= self.max_device_len
        self._host_ids = torch.empty(self.max_device_len, dtype=self.input_ids.dtype)
        self._host_ids[:prompt_len] = self.input_ids
        self.input_ids = self._host_ids[:prompt_len]

# Moves by what was computed, counts what is left as a range, and joins tensors.
import torch


class Req:
    def __post_init__(self):
        assert self.input_ids.is_cpu
        self.device_len = self.input_ids.numel()
        self.max_device_len = self.device_len + self.output_len
        if not (-1 < self.cached_len <= self.device_len - 1 and self.output_len > -1):
            raise AssertionError("no such request")

    @property
    def remain_len(self):
        return len(range(self.device_len, self.max_device_len))

    @property
    def extend_len(self):
        return len(range(self.cached_len, self.device_len))

    @property
    def can_decode(self):
        return self.device_len < self.max_device_len

    def complete_one(self):
        self.cached_len += self.extend_len
        self.device_len = self.cached_len + 1

    def append_host(self, next_token):
        self.input_ids = torch.cat((self.input_ids, next_token))

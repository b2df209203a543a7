# Thinks that only ever one token is appended.
# caught by: edge
import torch


class Req:
    def append_host(self, next_token):
        self.input_ids = torch.cat([self.input_ids, next_token[:1]])

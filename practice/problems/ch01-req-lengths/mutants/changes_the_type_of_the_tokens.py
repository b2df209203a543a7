# Builds the ids anew from Python numbers, which makes them int64.
# caught by: sample
import torch


class Req:
    def append_host(self, next_token):
        self.input_ids = torch.tensor(self.input_ids.tolist() + next_token.tolist())

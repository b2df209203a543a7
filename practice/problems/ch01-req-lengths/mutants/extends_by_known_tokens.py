# Takes the known tokens for what is computed this round, which is wrong for a chunk.
# caught by: edge
class Req:
    @property
    def extend_len(self):
        return len(self.input_ids) - self.cached_len

# Compares requests by content, so that two users with the same prompt become one.
# caught by: edge
class Req:
    def __eq__(self, other):
        return self.input_ids.tolist() == other.input_ids.tolist()

    def __hash__(self):
        return hash(tuple(self.input_ids.tolist()))

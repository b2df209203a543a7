# Allows a round when nothing is left: off by one at the limit.
# caught by: sample
class Req:
    @property
    def can_decode(self):
        return self.remain_len >= 0

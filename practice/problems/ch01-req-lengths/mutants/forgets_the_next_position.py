# Does not count the position that the next round computes, so a decode has nothing to do.
# caught by: sample
class Req:
    def complete_one(self):
        self.cached_len = self.device_len

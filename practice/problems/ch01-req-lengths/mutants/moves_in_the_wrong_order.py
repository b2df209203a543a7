# Adds the next position first, so that a token nobody has computed counts as cached.
# caught by: sample
class Req:
    def complete_one(self):
        self.device_len += 1
        self.cached_len = self.device_len

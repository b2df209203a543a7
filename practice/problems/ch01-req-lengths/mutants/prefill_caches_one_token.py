# Takes every round for a decode: a whole prefill is recorded as one cached token.
# caught by: sample
class Req:
    def complete_one(self):
        self.cached_len += 1
        self.device_len += 1

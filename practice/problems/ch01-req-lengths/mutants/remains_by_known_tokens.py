# Counts what is left from the tokens that are known, which come later than the round.
# caught by: sample
class Req:
    @property
    def remain_len(self):
        return self.max_device_len - len(self.input_ids)

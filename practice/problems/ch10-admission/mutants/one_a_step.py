# Lets in one request in each step.
# caught by: sample
class PrefillManager:
    def schedule(self):
        for request in list(self.waiting.values()):
            self._admit(request)
            break
        return list(self.running.values())

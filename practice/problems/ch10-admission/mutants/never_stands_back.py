# Lets in whoever fits; what they have in common is computed twice.
# caught by: sample
class PrefillManager:
    def schedule(self):
        for request in list(self.waiting.values()):
            if not self._admit(request):
                break
        return list(self.running.values())

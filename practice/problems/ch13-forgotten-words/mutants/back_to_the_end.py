# Lets whoever gave way wait at the end of the line.
# caught by: edge
class PrefillManager:
    def take_back(self, request: Request) -> None:
        """Let a running request wait again, in the place that its arrival gives it."""
        self.waiting[request.uid] = request

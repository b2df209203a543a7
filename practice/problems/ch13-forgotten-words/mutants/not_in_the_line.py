# Does not let it wait at all.
# caught by: sample
class PrefillManager:
    def take_back(self, request: Request) -> None:
        """Let a running request wait again, in the place that its arrival gives it."""
        self.waiting = {**self.waiting}

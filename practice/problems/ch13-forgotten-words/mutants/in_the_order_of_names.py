# Puts the line in the order of names.
# caught by: edge
class PrefillManager:
    def take_back(self, request: Request) -> None:
        """Let a running request wait again, in the place that its arrival gives it."""
        waiting = [*self.waiting.values(), request]
        self.waiting = {one.uid: one for one in sorted(waiting, key=lambda one: one.uid)}

# Lets everyone who came later give way.
# caught by: basic
class Scheduler:
    def _grow(self) -> None:
        """Give all who run places for their next round; the youngest give way where there are none.

        The oldest is served first, and has at worst the whole pool: it gets on in every step, so
        all come to their end.
        """
        running = sorted(self._running(), key=lambda request: request.number)
        for request in running:
            while request.state is not State.WAITING and not self._cache.grow(request.req):
                later = [one for one in running if one.number > request.number]
                for one in later or [request]:
                    self._retract(running.pop())

# Stops serving once somebody had to give way.
# caught by: edge
class Scheduler:
    def _grow(self) -> None:
        """Give all who run places for their next round; the youngest give way where there are none.

        The oldest is served first, and has at worst the whole pool: it gets on in every step, so
        all come to their end.
        """
        running = sorted(self._running(), key=lambda request: request.number)
        for request in running:
            gave_way = False
            while request.state is not State.WAITING and not self._cache.grow(request.req):
                self._retract(running.pop())
                gave_way = True
            if gave_way:
                break

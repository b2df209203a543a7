# Takes the order in which they were let in for that of arrival.
# caught by: edge
class Scheduler:
    def _grow(self) -> None:
        """Give all who run places for their next round; the youngest give way where there are none.

        The oldest is served first, and has at worst the whole pool: it gets on in every step, so
        all come to their end.
        """
        running = self._running()
        for request in running:
            while request.state is not State.WAITING and not self._cache.grow(request.req):
                self._retract(running.pop())  # in the end itself

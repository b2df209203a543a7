# Always cuts the longest run, until there is no long one left.
# caught by: basic
class PageAllocator:
    def _best_run(self, count):
        lengths = [end - first for first, end in self._runs]

        return lengths.index(max(lengths))

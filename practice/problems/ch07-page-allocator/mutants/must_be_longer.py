# Wants a run that is longer than what is asked for.
# caught by: basic
class PageAllocator:
    def _best_run(self, count):
        lengths = [end - first for first, end in self._runs]

        enough = [(length, index) for index, length in enumerate(lengths) if length > count]
        return min(enough)[1] if enough else lengths.index(max(lengths))

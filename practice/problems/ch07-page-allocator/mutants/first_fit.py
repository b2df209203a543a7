# Takes the first run that is enough and cuts a long one for nothing.
# caught by: basic
class PageAllocator:
    def _best_run(self, count):
        lengths = [end - first for first, end in self._runs]

        enough = [index for index, length in enumerate(lengths) if length >= count]
        return enough[0] if enough else lengths.index(max(lengths))

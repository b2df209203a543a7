# When no run is enough, takes one longest run after another, and never fits the rest.
# caught by: edge
class PageAllocator:
    def allocate(self, count):
        assert count <= self.num_free
        self.num_free -= count
        pages = []
        wanted = count
        while count > 0:
            index = self._best_run(wanted)
            first, end = self._runs.pop(index)
            cut = min(first + count, end)
            if cut < end:
                self._runs.insert(index, (cut, end))
            pages.extend(range(first, cut))
            count -= cut - first
        return pages

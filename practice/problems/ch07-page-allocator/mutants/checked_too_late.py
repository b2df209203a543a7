# Takes the pages off the count before it looks whether there are so many.
# caught by: edge
class PageAllocator:
    def allocate(self, count):
        self.num_free -= count
        assert self.num_free >= 0
        pages = []
        while count > 0:
            index = self._best_run(count)
            first, end = self._runs.pop(index)
            cut = min(first + count, end)
            if cut < end:
                self._runs.insert(index, (cut, end))
            pages.extend(range(first, cut))
            count -= cut - first
        return pages

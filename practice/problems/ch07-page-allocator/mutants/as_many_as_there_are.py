# Gives fewer pages than asked for when there are not enough.
# caught by: edge
class PageAllocator:
    def allocate(self, count):
        count = min(count, self.num_free)
        self.num_free -= count
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

# Cuts the end of the run.
# caught by: basic
class PageAllocator:
    def allocate(self, count):
        assert count <= self.num_free
        self.num_free -= count
        pages = []
        while count > 0:
            index = self._best_run(count)
            first, end = self._runs.pop(index)
            cut = max(end - count, first)
            if first < cut:
                self._runs.insert(index, (first, cut))
            pages.extend(range(cut, end))
            count -= end - cut
        return pages

# Two dicts find a run by its first and by its last page, so that merging needs no search.
class PageAllocator:
    def __init__(self, num_pages):
        self.num_free = num_pages
        self._last_of = {}
        self._first_of = {}
        if num_pages:
            self._add(0, num_pages - 1)

    def _add(self, first, last):
        self._last_of[first] = last
        self._first_of[last] = first

    def _remove(self, first):
        last = self._last_of.pop(first)
        del self._first_of[last]
        return last

    def _best_run(self, count):
        def rank(first):
            length = self._last_of[first] - first + 1
            return (0, length, first) if length >= count else (1, -length, first)

        return min(self._last_of, key=rank)

    def allocate(self, count):
        assert 0 <= count <= self.num_free
        self.num_free -= count
        pages = []
        while count:
            first = self._best_run(count)
            last = self._remove(first)
            stop = min(first + count - 1, last)
            pages += range(first, stop + 1)
            count -= stop - first + 1
            if stop < last:
                self._add(stop + 1, last)
        return pages

    def free(self, pages):
        for page in pages:
            self._free_one(page)

    def _free_one(self, page):
        for first, last in self._last_of.items():
            assert not first <= page <= last, f"page {page} was free"
        first = last = page
        if page - 1 in self._first_of:
            first = self._first_of[page - 1]
            self._remove(first)
        if page + 1 in self._last_of:
            last = self._remove(page + 1)
        self._add(first, last)
        self.num_free += 1

    def free_pages(self):
        return [
            page
            for first in sorted(self._last_of)
            for page in range(first, self._last_of[first] + 1)
        ]

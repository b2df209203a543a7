# Keeps one flag per page and walks over them to find the runs.
import itertools


class PageAllocator:
    def __init__(self, num_pages):
        self._is_free = [True] * num_pages

    @property
    def num_free(self):
        return sum(self._is_free)

    def allocate(self, count):
        if count > self.num_free:
            raise AssertionError("too many pages")
        pages = []
        while missing := count - len(pages):
            spans = []
            for free, group in itertools.groupby(
                range(len(self._is_free)), self._is_free.__getitem__
            ):
                if free:
                    spans.append(list(group))
            fitting = [span for span in spans if len(span) >= missing]
            span = min(fitting, key=len) if fitting else max(spans, key=len)
            for page in span[:missing]:
                self._is_free[page] = False
                pages.append(page)
        return pages

    def free(self, pages):
        for page in pages:
            if self._is_free[page]:
                raise AssertionError(f"page {page} comes back twice")
            self._is_free[page] = True

    def free_pages(self):
        return list(itertools.compress(range(len(self._is_free)), self._is_free))

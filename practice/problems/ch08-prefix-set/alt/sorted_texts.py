# Keeps only the longest texts, sorted: the best match of a text is one of its two neighbours.
from bisect import bisect_left, insort


def shared(one, other):
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


class PrefixSet:
    def __init__(self, page_size):
        self.page_size = page_size
        self._texts = []

    def _cut(self, ids):
        groups = [iter(ids)] * self.page_size
        return list(zip(*groups, strict=False))

    def _known(self, pages):
        place = bisect_left(self._texts, pages)
        near = self._texts[max(0, place - 1) : place + 1]
        return max((shared(pages, text) for text in near), default=0)

    def insert(self, ids):
        pages = self._cut(ids)
        known = self._known(pages)
        if known < len(pages):
            if pages[:known] in self._texts:
                self._texts.remove(pages[:known])
            insort(self._texts, pages)
        return len(pages) - known

    def match(self, ids):
        return self._known(self._cut(ids)) * self.page_size

    def forget(self, ids):
        pages = self._cut(ids)
        pages = pages[: self._known(pages)]
        if pages not in self._texts:
            return 0
        self._texts.remove(pages)
        return len(pages) - self._known(pages)

    def num_pages(self):
        count, before = 0, []
        for text in self._texts:
            count += len(text) - shared(before, text)
            before = text
        return count

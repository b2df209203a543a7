# Keeps single pages in a set and forgets what came before them.
# caught by: edge
class PrefixSet:
    def __init__(self, page_size):
        self.page_size = page_size
        self._known = set()

    def _pages(self, ids):
        size = self.page_size
        return [tuple(ids[end - size : end]) for end in range(size, len(ids) + 1, size)]

    def insert(self, ids):
        before = len(self._known)
        self._known.update(self._pages(ids))
        return len(self._known) - before

    def match(self, ids):
        count = 0
        for page in self._pages(ids):
            if page not in self._known:
                break
            count += 1
        return count * self.page_size

    def forget(self, ids):
        before = len(self._known)
        self._known -= set(self._pages(ids))
        return before - len(self._known)

    def num_pages(self):
        return len(self._known)

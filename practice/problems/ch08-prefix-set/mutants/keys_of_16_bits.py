# Keeps 16 bits of each token, as if no vocabulary were larger.
# caught by: edge
class PrefixSet:
    def __init__(self, page_size):
        self.page_size = page_size
        self._root = {}
        self._num_pages = 0

    def insert(self, ids):
        node, new = self._root, 0
        for page in self._pages(ids):
            if page not in node:
                node[page] = {}
                new += 1
            node = node[page]
        self._num_pages += new
        return new

    def match(self, ids):
        return len(self._path(ids)) * self.page_size

    def forget(self, ids):
        gone = 0
        for node, page in reversed(self._path(ids)):
            if node[page]:
                break
            del node[page]
            gone += 1
        self._num_pages -= gone
        return gone

    def num_pages(self):
        return self._num_pages

    def _pages(self, ids):
        """The whole pages of a text."""
        size = self.page_size
        return [
            tuple(token & 0xFFFF for token in ids[end - size : end])
            for end in range(size, len(ids) + 1, size)
        ]

    def _path(self, ids):
        """The known pages at the start of a text, each with the dict that holds it."""
        node, path = self._root, []
        for page in self._pages(ids):
            if page not in node:
                break
            path.append((node, page))
            node = node[page]
        return path

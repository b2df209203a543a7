# Goes down by recursion, which a long text brings to its limit.
# caught by: large
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
        return [tuple(ids[end - size : end]) for end in range(size, len(ids) + 1, size)]

    def _path(self, ids):
        """The known pages at the start of a text, each with the dict that holds it."""
        return self._below(self._root, self._pages(ids), 0)

    def _below(self, node, pages, at):
        if at == len(pages) or pages[at] not in node:
            return []
        return [(node, pages[at]), *self._below(node[pages[at]], pages, at + 1)]

# Hands out the lowest pages: any free page is right, but these are scattered.
# caught by: basic
class PageAllocator:
    def allocate(self, count):
        assert count <= self.num_free
        self.num_free -= count
        pages = self.free_pages()[:count]
        rest = self.free_pages()[count:]
        self._runs = []
        self.num_free -= len(rest)
        self.free(rest)
        return pages

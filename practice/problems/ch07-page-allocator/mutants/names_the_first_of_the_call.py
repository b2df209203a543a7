# Names the first page of the call, not the one that was free.
# caught by: edge
class PageAllocator:
    def free(self, pages):
        pages = list(pages)
        for page in pages:
            assert page not in self.free_pages(), f"page {pages[0]} is free already"
            self._free_one(page)

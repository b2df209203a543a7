# Looks at all pages first and then frees: a repetition within the call is missed.
# caught by: edge
class PageAllocator:
    def free(self, pages):
        pages = list(pages)
        for page in pages:
            assert page not in self.free_pages(), f"page {page} is free already"
        for page in set(pages):
            self._free_one(page)

# Passes over a page that is free already, and the mistake goes on elsewhere.
# caught by: basic
class PageAllocator:
    def free(self, pages):
        for page in pages:
            if page not in self.free_pages():
                self._free_one(page)

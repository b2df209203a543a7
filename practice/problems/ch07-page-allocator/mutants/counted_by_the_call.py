# Adds the length of the call before it knows that all pages come back.
# caught by: basic
class PageAllocator:
    def free(self, pages):
        pages = list(pages)
        count = self.num_free + len(pages)
        try:
            for page in pages:
                self._free_one(page)
        finally:
            self.num_free = count

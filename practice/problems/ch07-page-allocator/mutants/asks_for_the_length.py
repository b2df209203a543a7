# Takes the pages for a list: an iterator has no length.
# caught by: edge
class PageAllocator:
    def free(self, pages):
        for index in range(len(pages)):
            self._free_one(pages[index])

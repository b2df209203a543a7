# Takes a page back that is free, and hands it out twice.
# caught by: basic
class PageAllocator:
    def _free_one(self, page):
        pages = sorted({*self.free_pages(), page})
        self.num_free += 1
        self._runs = []
        for one in pages:
            if self._runs and self._runs[-1][1] == one:
                self._runs[-1] = (self._runs[-1][0], one + 1)
            else:
                self._runs.append((one, one + 1))

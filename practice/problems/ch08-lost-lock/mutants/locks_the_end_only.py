# Locks the last node only, as if what lies above could not be evicted before it.
# caught by: sample
class RadixTree:
    def lock(self, handle):
        for node in [*handle.node.path()][:1]:
            if node.lock_count == 0:
                del self._unlocked[node]
                self.num_evictable -= len(node.pages)
                self.num_locked += len(node.pages)
            node.lock_count += 1

    def unlock(self, handle):
        for node in [*handle.node.path()][:1]:
            assert node.lock_count > 0, "not locked"
            node.lock_count -= 1
            if node.lock_count == 0:
                self.num_locked -= len(node.pages)
                self.num_evictable += len(node.pages)
                self._unlocked[node] = None

# Takes a lock for a flag, so that the first to end unlocks for all.
# caught by: basic
class RadixTree:
    def lock(self, handle):
        for node in handle.node.path():
            if node.lock_count == 0:
                del self._unlocked[node]
                self.num_evictable -= len(node.pages)
                self.num_locked += len(node.pages)
            node.lock_count = 1

    def unlock(self, handle):
        for node in handle.node.path():
            if node.lock_count:
                node.lock_count = 0
                self.num_locked -= len(node.pages)
                self.num_evictable += len(node.pages)
                self._unlocked[node] = None

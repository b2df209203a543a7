# Counts the pages as locked once per lock and not once.
# caught by: basic
class RadixTree:
    def lock(self, handle):
        for node in handle.node.path():
            if node.lock_count == 0:
                del self._unlocked[node]
                self.num_evictable -= len(node.pages)
            self.num_locked += len(node.pages)
            node.lock_count += 1

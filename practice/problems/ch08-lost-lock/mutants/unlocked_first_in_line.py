# Puts what was read until now at the front of the line, as if it were the oldest.
# caught by: edge
class RadixTree:
    def unlock(self, handle):
        for node in reversed([*handle.node.path()]):
            assert node.lock_count > 0, "not locked"
            node.lock_count -= 1
            if node.lock_count == 0:
                self.num_locked -= len(node.pages)
                self.num_evictable += len(node.pages)
                self._unlocked[node] = None
                self._unlocked.move_to_end(node, last=False)

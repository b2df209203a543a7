# Stops unlocking at the first node that others still lock: those above keep a lock for ever.
# caught by: sample
class RadixTree:
    def unlock(self, handle):
        for node in handle.node.path():
            assert node.lock_count > 0, "not locked"
            node.lock_count -= 1
            if node.lock_count > 0:
                break
            self.num_locked -= len(node.pages)
            self.num_evictable += len(node.pages)
            self._unlocked[node] = None

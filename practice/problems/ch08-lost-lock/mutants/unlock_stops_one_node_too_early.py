# Takes the topmost node for the root and never unlocks it.
# caught by: sample
class RadixTree:
    def unlock(self, handle):
        for node in handle.node.path():
            assert node.lock_count > 0, "not locked"
            if node.parent is self._root:
                break
            node.lock_count -= 1
            if node.lock_count == 0:
                self.num_locked -= len(node.pages)
                self.num_evictable += len(node.pages)
                self._unlocked[node] = None

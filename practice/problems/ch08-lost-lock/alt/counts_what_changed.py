# Counts first, then moves all nodes that changed at once; goes up by hand.
class RadixTree:
    def lock(self, handle):
        fresh, node = [], handle.node
        while node is not self._root:
            if not node.lock_count:
                fresh.append(node)
            node.lock_count, node = node.lock_count + 1, node.parent
        for node in fresh:
            self._unlocked.pop(node)
        self._move(fresh, 1)

    def unlock(self, handle):
        path = [*handle.node.path()]
        assert all(node.lock_count for node in path), "not locked"
        for node in path:
            node.lock_count -= 1
        released = [node for node in path if not node.lock_count]
        self._unlocked.update((node, None) for node in released)
        self._move(released, -1)

    def _move(self, nodes, sign):
        count = sign * sum(len(node.keys) for node in nodes)
        self.num_locked += count
        self.num_evictable -= count

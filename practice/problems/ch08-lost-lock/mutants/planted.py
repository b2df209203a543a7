# Stops at the first node that is locked already, since those above it are protected anyway.
# caught by: sample
class RadixTree:
    def lock(self, handle: RadixHandle) -> None:
        """Protect the prefix from eviction; every lock needs its unlock."""
        for node in handle.node.path():
            node.lock_count += 1
            if node.lock_count > 1:
                break  # so the nodes above it are locked as well
            del self._unlocked[node]
            self.num_evictable -= len(node.pages)
            self.num_locked += len(node.pages)

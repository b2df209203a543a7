# Counts the pages as evictable again, but never lists their nodes.
# caught by: basic
class RadixTree:
    def unlock(self, handle):
        for node in handle.node.path():
            assert node.lock_count > 0, "not locked"
            node.lock_count -= 1
            if node.lock_count == 0:
                self.num_locked -= len(node.pages)
                self.num_evictable += len(node.pages)

# Lists the front as evictable although it has inherited locks.
# caught by: sample
class RadixTree:
    def _split(self, node, at):
        parent = node.parent
        front = RadixNode(
            node.keys[:at], node.pages[:at], parent, {node.keys[at]: node}, node.lock_count
        )
        self._unlocked[front] = None
        parent.children[front.keys[0]] = front
        node.keys, node.pages, node.parent = node.keys[at:], node.pages[at:], front
        return front

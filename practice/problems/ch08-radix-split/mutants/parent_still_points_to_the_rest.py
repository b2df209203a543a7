# Forgets the parent's entry, so that the front is in no tree.
# caught by: sample
class RadixTree:
    def _split(self, node, at):
        front = RadixNode(
            node.keys[:at], node.pages[:at], node.parent, {node.keys[at]: node}, node.lock_count
        )
        node.keys, node.pages, node.parent = node.keys[at:], node.pages[at:], front
        return front

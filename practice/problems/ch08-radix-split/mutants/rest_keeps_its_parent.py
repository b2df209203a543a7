# Leaves the rest below its old parent: its path no longer leads through the front.
# caught by: sample
class RadixTree:
    def _split(self, node, at):
        parent = node.parent
        front = RadixNode(
            node.keys[:at], node.pages[:at], parent, {node.keys[at]: node}, node.lock_count
        )
        parent.children[front.keys[0]] = front
        node.keys, node.pages = node.keys[at:], node.pages[at:]
        return front

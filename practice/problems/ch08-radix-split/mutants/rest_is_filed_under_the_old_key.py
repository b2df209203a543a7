# Files the rest under the first page of the whole node, so that no text finds it.
# caught by: sample
class RadixTree:
    def _split(self, node, at):
        parent = node.parent
        front = RadixNode(
            node.keys[:at], node.pages[:at], parent, {node.keys[0]: node}, node.lock_count
        )
        parent.children[front.keys[0]] = front
        node.keys, node.pages, node.parent = node.keys[at:], node.pages[at:], front
        return front

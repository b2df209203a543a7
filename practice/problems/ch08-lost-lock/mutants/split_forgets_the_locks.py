# Lets the front of a cut begin without locks.
# caught by: edge
class RadixTree:
    def _split(self, node, at):
        parent = node.parent
        front = RadixNode(node.keys[:at], node.pages[:at], parent, {node.keys[at]: node})
        parent.children[front.keys[0]] = front
        node.keys, node.pages, node.parent = node.keys[at:], node.pages[at:], front
        return front

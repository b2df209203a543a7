# Hands the children to the front, where they go on from the wrong place.
# caught by: edge
class RadixTree:
    def _split(self, node, at):
        parent = node.parent
        front = RadixNode(node.keys[:at], node.pages[:at], parent, node.children, node.lock_count)
        for child in front.children.values():
            child.parent = front
        parent.children[front.keys[0]] = front
        node.keys, node.pages, node.parent = node.keys[at:], node.pages[at:], front
        node.children = {}
        front.children[node.keys[0]] = node
        return front

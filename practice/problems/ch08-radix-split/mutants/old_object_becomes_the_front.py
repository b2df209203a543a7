# Lets the old object become the front: every handle that ends at it shrinks.
# caught by: sample
class RadixTree:
    def _split(self, node, at):
        rest = RadixNode(node.keys[at:], node.pages[at:], node, node.children, node.lock_count)
        for child in rest.children.values():
            child.parent = rest
        if rest.lock_count == 0:
            self._unlocked[rest] = None
        node.keys, node.pages = node.keys[:at], node.pages[:at]
        node.children = {rest.keys[0]: rest}
        return node

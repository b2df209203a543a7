# Takes the first pages of a leaf, without which the others are of no use.
# caught by: basic
class RadixTree:
    def _shorten(self, leaf, most):
        keep = max(0, len(leaf.pages) - most)
        taken = leaf.pages[: len(leaf.pages) - keep]
        if keep == 0:
            del leaf.parent.children[leaf.keys[0]], self._unlocked[leaf]
        del leaf.keys[: len(taken)], leaf.pages[: len(taken)]
        return taken

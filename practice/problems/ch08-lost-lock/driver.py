"""Runs the operations on a RadixTree and reports pages only: what is kept, and who reads what."""

from minisgl.kvcache.radix_tree import RadixTree


def run(ops):
    tree, size, handles, reading, results = None, 1, {}, {}, []
    for name, *values in ops:
        result = None
        if name == "tree":
            (size,) = values
            tree = RadixTree(size)
        elif name == "keep":
            ids, first = values
            result = tree.insert(list(ids), list(range(first, first + len(ids) // size)))
        elif name == "begin":
            who, ids = values
            handles[who] = reading[who] = tree.match(list(ids))
            tree.lock(handles[who])
            result = handles[who].cached_len
        elif name == "end":
            reading.pop(values[0], None)
            try:
                tree.unlock(handles[values[0]])
            except AssertionError:
                result = "AssertionError"
        elif name == "evict":
            result = sorted(tree.evict(min(values[0], tree.num_evictable)))
        elif name == "room":
            result = [tree.num_evictable, tree.num_locked]
        results.append(
            {
                "result": result,
                "kept": sorted(tree.pages()),
                "read": {who: reading[who].pages() for who in sorted(reading)},
            }
        )
    return results

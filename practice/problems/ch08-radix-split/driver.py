"""Runs the operations on a RadixTree and reports the whole tree after each."""

from minisgl.kvcache.radix_tree import RadixTree


def nodes_of(tree):
    """[depth, tokens, pages, locks] of every node, each before those below it."""
    found, todo = [], [(0, tree._root)]
    while todo:
        depth, node = todo.pop()
        if depth:
            tokens = [token for key in node.keys for token in key]
            found.append([depth, tokens, list(node.pages), node.lock_count])
        below = [(depth + 1, node.children[key]) for key in sorted(node.children, reverse=True)]
        todo += below
    return found


def broken(tree):
    """What cannot be in a sound tree."""
    found, count, todo = [], 0, [tree._root]
    while todo:
        node = todo.pop()
        for key, child in node.children.items():
            where = f"the node of pages {list(child.pages)}"
            if child.parent is not node:
                found.append(f"{where} has another parent")
            if not child.keys or child.keys[0] != key or len(child.keys) != len(child.pages):
                found.append(f"{where} is filed under {list(key)}")
            if (child.lock_count == 0) != (child in tree._unlocked):
                found.append(f"{where} has {child.lock_count} locks and is listed otherwise")
            count += child.lock_count == 0
            todo.append(child)
    if count != len(tree._unlocked):
        found.append(f"{len(tree._unlocked)} nodes are listed as unlocked, {count} are")
    return sorted(found)


def run(ops):
    tree, handles, locks, results = None, {}, {}, []
    for name, *values in ops:
        result = None
        if name == "tree":
            tree = RadixTree(values[0])
            size = values[0]
        elif name == "insert":
            ids, first = values
            handle = tree.insert(list(ids), list(range(first, first + len(ids) // size)))
            result = [handle.cached_len, handle.pages()]
        elif name == "match":
            handle = tree.match(list(values[0]))
            result = [handle.cached_len, handle.pages()]
        elif name == "find":
            handles[values[0]] = tree.match(list(values[1]))
        elif name == "lock":
            tree.lock(handles[values[0]])
            locks[values[0]] = locks.get(values[0], 0) + 1
        elif name == "unlock":
            tree.unlock(handles[values[0]])
            locks[values[0]] -= 1
        elif name == "evict":
            result = sorted(tree.evict(min(values[0], tree.num_evictable)))
            handles = {who: handle for who, handle in handles.items() if locks.get(who)}
        results.append(
            {
                "result": result,
                "nodes": nodes_of(tree),
                "handles": {who: handles[who].pages() for who in sorted(handles)},
                "evictable, locked": [tree.num_evictable, tree.num_locked],
                "broken": broken(tree),
            }
        )
    return results

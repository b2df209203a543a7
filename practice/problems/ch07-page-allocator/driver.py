"""Runs the operations on a PageAllocator and reports what can be seen of it after each."""

import re

from minisgl.kvcache.allocator import PageAllocator


def runs(pages):
    """`[0, 1, 2, 5]` as `0-2 5`: pages in a row are joined, nothing is sorted."""
    parts = []
    for page in pages:
        if parts and parts[-1][1] + 1 == page:
            parts[-1][1] = page
        else:
            parts.append([page, page])
    return " ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in parts)


class Run:
    def __init__(self):
        self.held = {}

    def new(self, num_pages):
        self.pool = PageAllocator(num_pages)
        return {}

    def allocate(self, count):
        try:
            pages = self.pool.allocate(count)
        except AssertionError:
            return {"raised": "AssertionError"}
        if type(pages) is not list or any(type(page) is not int for page in pages):
            return {"pages": f"no list of int, but {type(pages).__name__}"}
        return {"pages": list(pages)}

    def take(self, number, count):
        seen = self.allocate(count)
        if isinstance(seen.get("pages"), list):
            self.held[number] = seen["pages"]
            seen["pages"] = runs(seen["pages"])
        return seen

    def free(self, pages, iterable=list):
        try:
            self.pool.free(iterable(pages))
        except AssertionError as error:
            numbers = {int(number) for number in re.findall(r"\d+", str(error))}
            return {"raised": "AssertionError", "named": sorted(numbers & set(pages))}
        return {"raised": None}

    def free_iter(self, pages):
        return self.free(pages, iter)

    def give(self, number, backwards):
        pages = self.held.pop(number)
        return self.free(pages[::-1] if backwards else pages)


def run(ops):
    state = Run()
    results = []
    for name, *values in ops:
        seen = getattr(state, name)(*values)
        free = state.pool.free_pages()
        results.append({**seen, "free": runs(free), "num_free": state.pool.num_free})
    return results

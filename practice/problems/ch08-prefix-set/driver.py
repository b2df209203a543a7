"""Runs the operations on a PrefixSet and reports each result and the number of pages after it."""

from submission import PrefixSet


def run(ops):
    kept, results = None, []
    for name, value in ops:
        result = None
        if name == "new":
            kept = PrefixSet(value)
        else:
            ids = list(value)
            result = getattr(kept, name)(ids)
            if ids != value:
                result = f"the caller's list is now {ids[:8]}"
            ids[:] = [7] * len(ids)  # the caller goes on to use its list
        results.append({"result": result, "pages": kept.num_pages()})
    return results

"""The free pages as a plain set: runs are looked for anew every time."""

from typing import Any

from practice.judgelib.cases import Case


def expected(case: Case) -> list[dict[str, Any]]:
    results = []
    free: set[int] = set()
    held: dict[int, list[int]] = {}
    for name, *values in case.ops:
        seen: dict[str, Any] = {}
        if name == "new":
            free = set(range(values[0]))
        elif name in ("allocate", "take"):
            count = values[-1]
            if count > len(free):
                seen = {"raised": "AssertionError"}
            else:
                pages = taken(free, count)
                seen = {"pages": pages}
                if name == "take":
                    held[values[0]] = pages
                    seen = {"pages": text(pages)}
        else:
            pages = values[0] if name != "give" else held.pop(values[0])
            pages = pages[::-1] if name == "give" and values[1] else pages
            seen = {"raised": None}
            for page in pages:
                if page in free:
                    seen = {"raised": "AssertionError", "named": [page]}
                    break
                free.add(page)
        results.append({**seen, "free": text(sorted(free)), "num_free": len(free)})
    return results


def groups(pages: list[int]) -> list[list[int]]:
    found: list[list[int]] = []
    for page in pages:
        if not found or found[-1][-1] != page - 1:
            found.append([])
        found[-1].append(page)
    return found


def taken(free: set[int], count: int) -> list[int]:
    """Takes pages out of the set by the rule of the statement."""
    pages: list[int] = []
    while len(pages) < count:
        missing = count - len(pages)
        parts = groups(sorted(free))
        parts.sort(key=lambda part: (len(part) < missing, abs(len(part) - missing), part[0]))
        pages += parts[0][:missing]
        free -= set(pages)
    return pages


def text(pages: list[int]) -> str:
    return " ".join(
        str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in groups(pages)
    )

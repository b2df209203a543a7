"""Chapter 8: the tree of prefixes: hits, splits, locks and evictions of the example's run."""

from __future__ import annotations

from itertools import pairwise

from . import traces
from .canvas import SMALL, Canvas
from .drawing import Drawing, Frame, figure
from .labels import Words
from .prefix_tree import Event, Look, picture
from .shapes import colour, spans


def _trace() -> Event:
    return traces.load("ch08_radix_cache")


def _legend(word: Words, trace: Event, requests_shown: int) -> list[tuple[str, str]]:
    asked = [event["words"] for event in trace["events"] if event["kind"] == "ask"]
    asked = asked[:requests_shown]
    requests = [
        (f"{colour(n)} solid", word("request", n=n + 1, words=" ".join(words)))
        for n, words in enumerate(asked)
    ]
    rest = [
        ("r0 edge+hatch", word("own")),
        ("free", word("free")),
        ("lock", word("locked")),
        ("ring", word("changed")),
    ]
    return requests + rest


def _level(frames: list[Frame]) -> list[Frame]:
    """Let all frames be as high as the highest, so that nothing jumps."""
    highest = max(frame.canvas.height for frame in frames)
    for frame in frames:
        frame.canvas.grow(highest)
    return frames


def _quote(words: list[str]) -> str:
    return " ".join(words)


def _first_cache(events: list[Event]) -> dict[int, int]:
    """Request -> the event after which its prefill is in the tree."""
    found: dict[int, int] = {}
    for number, event in enumerate(events):
        if event["kind"] == "cache":
            found.setdefault(event["request"], number)
    return found


@figure("ch08_tree")
def tree(word: Words) -> Drawing:
    """The tree whenever a request of the example has come or gone."""
    trace = _trace()
    events = trace["events"]
    came = _first_cache(events)
    asks = [event for event in events if event["kind"] == "ask"]
    frames = []
    before: set[tuple[int, tuple[str, ...]]] = set()
    for number, event in enumerate(events):
        if number in came.values():
            ask = asks[event["request"] - 1]
            text = word(
                "came",
                n=event["request"],
                words=_quote(ask["words"]),
                hit=ask["hit"],
                total=len(ask["words"]),
            )
        elif event["kind"] == "free":
            text = word("went" if _kept(event) - before else "went_bare", n=event["request"])
        else:
            continue
        new = {page for page, _ in _kept(event) - before}
        frames.append(Frame(picture(word, trace, number, Look(ringed=new)), text))
        before = _kept(event)
    return Drawing(_level(frames), _legend(word, trace, len(asks)), columns=2)


def _kept(event: Event) -> set[tuple[int, tuple[str, ...]]]:
    """The pages of the tree, each with its words: a number alone may have been given out again."""
    return {
        (page, tuple(words))
        for node in event["nodes"]
        for page, words in zip(node["pages"], node["words"], strict=True)
    }


def _pages(event: Event) -> set[int]:
    return {page for node in event["nodes"] for page in node["pages"]}


def _splits(events: list[Event]) -> list[int]:
    """Events in which a match has cut a node in two."""
    return [
        number
        for number, (before, event) in enumerate(pairwise(events), 1)
        if event["kind"] == "match" and len(event["nodes"]) > len(before["nodes"])
    ]


@figure("ch08_split")
def split(word: Words) -> Drawing:
    """The second request shares one page with the first: match, split, lock, insert."""
    trace = _trace()
    events = trace["events"]
    at = _splits(events)[0]
    ask = next(event for event in events[at:] if event["kind"] == "ask")
    request = 1 + sum(event["kind"] == "ask" for event in events[:at])
    allocated = next(n for n in range(at, len(events)) if events[n]["kind"] == "allocate")
    own = _given(events[allocated])
    done = _first_cache(events)[request]
    shared = {page for node in events[at]["nodes"] if node["parent"] == 0 for page in node["pages"]}
    pages = events[at]["nodes"][0]["pages"]
    frames = [
        Frame(
            picture(word, trace, at - 1, Look()),
            word("before", n=request, words=_quote(ask["words"])),
        ),
        Frame(
            picture(word, trace, at, Look(ringed=shared)),
            word("split", shared=spans(sorted(shared)), rest=spans(pages)),
        ),
        Frame(
            picture(word, trace, allocated, Look(ringed=own)),
            word("allocated", n=request, pages=spans(sorted(own))),
        ),
        Frame(
            picture(word, trace, done, Look(ringed=_pages(events[done]) - _pages(events[at]))),
            word("inserted", pages=spans(sorted(_pages(events[done]) - _pages(events[at])))),
        ),
    ]
    return Drawing(_level(frames), _legend(word, trace, request), columns=2)


def _given(event: Event) -> set[int]:
    """The pages that an allocation has given to its request, some of them evicted just before."""
    return set(event["own"][str(event["request"])])


@figure("ch08_evict")
def evict(word: Words) -> Drawing:
    """Twice too few pages are free: the least recently used leaf gives its last ones up."""
    trace = _trace()
    events = trace["events"]
    frames = []
    request = 0
    for number, event in enumerate(events):
        if event["kind"] != "evict":
            continue
        request = sum(one["kind"] == "ask" for one in events[:number])
        gone = set(event["pages"])
        free = len(events[number - 1]["free"])
        need = len(events[number + 1]["own"][str(request)])
        frames += [
            Frame(
                picture(word, trace, number - 1, Look(ringed=gone, order=True)),
                word("short", n=request, need=need, free=free),
            ),
            Frame(
                picture(word, trace, number + 1, Look(ringed=gone, order=True)),
                word("evicted", n=request, pages=spans(event["pages"])),
            ),
        ]
    return Drawing(_level(frames), _legend(word, trace, request), columns=2)


@figure("ch08_locks")
def locks(word: Words) -> Drawing:
    """Whose locks protect which nodes while two requests run, and after the first has ended."""
    trace = _trace()
    events = trace["events"]
    both = _first_cache(events)[2]
    one_gone = next(n for n, event in enumerate(events) if event["kind"] == "free")
    counts = {
        number: max(node["locks"] for node in events[number]["nodes"])
        for number in (both, one_gone)
    }
    frames = [
        Frame(picture(word, trace, both, Look(order=True)), word("both", n=counts[both])),
        Frame(
            picture(word, trace, one_gone, Look(order=True)), word("one_gone", n=counts[one_gone])
        ),
    ]
    return Drawing(_level(frames), _legend(word, trace, 2), columns=2)


@figure("ch08_cache_req")
def cache_req(word: Words) -> Drawing:
    """The pages of a request while `cache_req` runs, variable by variable."""
    trace, canvas = traces.load("ch08_cache_req"), Canvas()
    size, text, known = trace["page_size"], trace["text"], len(trace["old_prefix"])
    freed = set(trace["free_after"]) - set(trace["free"])
    rows: list[tuple[str, list[int], str]] = [
        ("old.pages", trace["old"], word("old")),
        ("shared", trace["prefix"], word("shared")),
        ("pages", trace["pages"], word("pages")),
        ("duplicates", trace["old"], word("duplicates")),
    ]
    left, side, step, y = 80.0, 30.0, 35.0, -14.0
    canvas.text(left - 8, 14, word("text"), "dim", size=SMALL, anchor="end")
    for column in range(len(trace["old"])):
        piece = text[column * size : (column + 1) * size] or "…"
        x = left + column * step + side / 2
        canvas.text(x, 14, " ".join(piece), "mono", anchor="middle")
    for name, pages, said in rows:
        y += 62
        canvas.text(0, y - 7, said, "dim", size=SMALL)
        canvas.text(left - 8, y + 20, name, "mono bold", size=SMALL, anchor="end")
        for column, page in enumerate(pages):
            x = left + column * step
            if name == "duplicates" and page not in freed:
                continue
            in_tree = page in trace["tree"] or (name != "old.pages" and page in trace["prefix"])
            cls = colour(0) if page in trace["tree"] else colour(1)
            canvas.rect(x, y, side, side, f"{cls} {'solid' if in_tree else 'edge'}")
            if not in_tree:
                canvas.hatch(x, y, side, side, cls)
                canvas.rect(x + 5, y + 7, side - 10, 16, f"{cls} chip", r=3)
            if (name == "shared" and page not in trace["tree"]) or name == "duplicates":
                canvas.rect(x - 1, y - 1, side + 2, side + 2, "ring")
            canvas.text(x + side / 2, y + 20, page, "bold", anchor="middle")
        locked = {"old.pages": known, "shared": len(pages), "pages": len(trace["prefix"])}
        if name in locked:
            canvas.path(f"M{left} {y + side + 4}h{locked[name] * step - 5}", "path r0")
    legend = [
        ("r1 solid", word("tree")),
        ("r2 edge+hatch", word("own")),
        ("ring", word("changed")),
    ]
    return Drawing([Frame(canvas)], legend)


@figure("live_radix")
def live_radix(word: Words) -> Drawing:
    """What a reader would call a step: a split, an eviction, a request that comes, gives, goes."""
    trace = _trace()
    events = trace["events"]
    frames = []
    request = 0
    for number, event in enumerate(events):
        request += event["kind"] == "ask"
        text, ringed = _told(word, events, number, request)
        if text:
            look = Look(ringed=ringed, order=True)
            frames.append(Frame(picture(word, trace, number, look), text))
    return Drawing(_level(frames), _legend(word, trace, request), steps=True)


def _told(word: Words, events: list[Event], number: int, request: int) -> tuple[str, set[int]]:
    """What has been done by this event, and the pages to ring; no text in the middle of a step."""
    event, before = events[number], events[number - 1]
    match event["kind"]:
        case "match" if number in _splits(events):
            new = {node["id"] for node in event["nodes"]} - {n["id"] for n in before["nodes"]}
            front = {p for node in event["nodes"] if node["id"] in new for p in node["pages"]}
            return word("split", words=_quote(event["words"]), pages=spans(sorted(front))), front
        case "evict":
            return word("evict", pages=spans(event["pages"])), set(event["pages"])
        case "allocate" if event["nodes"]:  # with an empty tree there is little to see
            ask = next(one for one in reversed(events[:number]) if one["kind"] == "ask")
            pages = _given(event)
            said = {"words": _quote(ask["words"]), "pages": spans(sorted(pages))}
            if not ask["hit"]:
                return word("cold", n=request, **said), pages
            total = len(ask["words"])
            return word("come", n=request, hit=ask["hit"], total=total, **said), pages
        case "cache":
            new = _pages(event) - _pages(_started(events, number))
            said = {"pages": spans(sorted(new))}
            return (word("insert", n=event["request"], **said) if new else ""), new
        case "free":
            freed = set(event["free"]) - set(_started(events, number)["free"])
            said = {"pages": spans(sorted(freed)) or word("none")}
            return word("go", n=event["request"], **said), freed
    return "", set()


def _started(events: list[Event], number: int) -> Event:
    """What there was before the changes to the tree that led to event `number`."""
    while events[number - 1]["kind"] in ("insert", "lock", "unlock"):
        number -= 1
    return events[number - 1]

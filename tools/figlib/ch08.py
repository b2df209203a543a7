"""Chapter 8: the tree of prefixes: hits, splits, locks and evictions of the example's run."""

from __future__ import annotations

from itertools import pairwise

from . import traces
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


@figure("live_radix")
def live_radix(word: Words) -> Drawing:
    """Every operation on the tree that changed something, one frame each."""
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
    """What an operation did, and the pages to ring; no text where there is nothing to see."""
    event = events[number]
    kind = event["kind"]
    if kind == "ask":
        total = len(event["words"])
        said = word("ask", n=request, words=_quote(event["words"]), hit=event["hit"], total=total)
        return said, set()
    if kind == "match":
        if number not in _splits(events):
            return "", set()
        new = {node["id"] for node in event["nodes"]} - {
            n["id"] for n in events[number - 1]["nodes"]
        }
        front = {p for node in event["nodes"] if node["id"] in new for p in node["pages"]}
        return word("split", pages=spans(sorted(front))), front
    if kind in ("lock", "unlock"):
        nodes = [node for node in event["nodes"] if node["id"] in event["path"]]
        pages = {page for node in nodes for page in node["pages"]}
        return word(kind, pages=spans(sorted(pages))), set()
    if kind == "allocate":
        pages = _given(event)
        return word("allocate", n=request, pages=spans(sorted(pages))), pages
    if kind == "insert":
        pages = set(event["pages"][event["known"] :])
        known = spans(event["pages"][: event["known"]]) or word("none")
        return word("insert", pages=spans(sorted(pages)), known=known), pages
    if kind == "evict":
        return word("evict", pages=spans(event["pages"])), set(event["pages"])
    if kind == "free":
        return word("free_req", n=event["request"]), set()
    return "", set()

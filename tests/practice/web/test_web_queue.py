"""Whose turn it is: the fair queue by itself."""

import random
import threading

import pytest
from serving import wait_until

from practice.web.queue import FairQueue, Full, Job, Reader


def job(session: str, number: int = 0, address: str = "", source: bytes = b"") -> Job:
    reader = Reader(address, session)
    return Job(f"{address}{session}{number}", "p", source, "submit", reader, 0)


def drain(queue: FairQueue) -> list[str]:
    found = []
    while len(queue):
        taken = queue.take(0)
        assert taken is not None
        found.append(taken.id)
    return found


def test_one_behind_a_hundred_is_served_next_but_one() -> None:
    queue = FairQueue()
    for number in range(100):
        queue.put(job("a", number))
    first = queue.take(0)
    assert first is not None and first.id == "a0"
    late = job("b")
    queue.put(late)
    assert queue.position(late) == 1
    assert drain(queue)[:3] == ["a1", "b0", "a2"]


def test_sessions_take_turns_and_each_keeps_its_order() -> None:
    queue = FairQueue()
    for session in "abc":
        for number in range(3):
            queue.put(job(session, number))
    assert drain(queue) == ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]


@pytest.mark.parametrize("seed", range(20))
def test_the_position_is_how_many_come_before(seed: int) -> None:
    rng = random.Random(seed)
    queue = FairQueue()
    waiting: list[Job] = []
    for number in range(rng.randint(1, 40)):
        waiting.append(job(rng.choice("abcd"), number, rng.choice("xyz")))
        queue.put(waiting[-1])
        if rng.random() < 0.3:
            taken = queue.take(0)
            assert taken is not None
            waiting.remove(taken)
    told = {one.id: queue.position(one) for one in waiting}
    assert told == {id: place for place, id in enumerate(drain(queue))}


def test_a_full_queue_says_whose_limit_it_is() -> None:
    queue = FairQueue(whole=8, each=3)

    def room(address: str, session: str) -> bool | None:
        """None: the whole queue is full."""
        try:
            queue.check(Reader(address, session), 0)
        except Full as full:
            return None if full.whole else False
        return True

    for number in range(3):
        assert room("x", "a")
        queue.put(job("a", number, "x"))
    assert room("x", "a") is False and room("x", "b") and room("y", "a")
    queue.put(job("b", 0, "x"))
    assert room("x", "c") is False  # one address has half of it
    for number in range(4):
        assert room("y", f"{number}")
        queue.put(job(f"{number}", 0, "y"))
    assert room("z", "a") is None
    assert queue.take(0) is not None  # room again
    assert room("z", "a")


def test_large_sources_fill_it_sooner() -> None:
    queue = FairQueue(whole_bytes=400)
    for address in "xy":
        for number in range(2):
            queue.check(Reader(address, "a"), 100)
            queue.put(job("a", number, address, bytes(100)))
        with pytest.raises(Full) as full:
            queue.check(Reader(address, "b"), 1)
        assert full.value.whole == (address == "y")
    queue.check(Reader("z", "a"), 0)


def test_who_comes_with_many_sessions_takes_the_turns_of_one_address() -> None:
    queue = FairQueue()
    for number in range(100):
        queue.put(job(f"s{number}", 0, "x"))
    late = job("a", 0, "y")
    queue.put(late)
    assert queue.position(late) == 1
    assert drain(queue)[:3] == ["xs00", "ya0", "xs10"]


def test_closing_wakes_who_waits_and_hands_out_nothing_more() -> None:
    queue = FairQueue()
    found: list[Job | None] = []
    waiter = threading.Thread(target=lambda: found.append(queue.take(30)))
    waiter.start()
    wait_until(lambda: queue._changed._waiters)  # type: ignore[attr-defined]
    queue.close()
    waiter.join(5)
    queue.put(job("a"))
    assert found == [None] and queue.take(0) is None and len(queue) == 1

"""Pools that are taken apart and put together again, with calls that must be refused."""

import random
from typing import Any

from practice.judgelib.cases import Case

Op = list[Any]


def holes(*taken: int, size: int) -> list[Op]:
    """A pool of `size` pages of which only these are in use."""
    free = [page for page in range(size) if page not in taken]
    return [["new", size], ["allocate", size], ["free", free]]


def drawn(rng: random.Random, size: int, rounds: int, share: float) -> list[Op]:
    """Requests come and go in any order; `share` of the pool is the most that one takes.

    Which pages a request has is only known to the allocator: `give` frees by the request's number.
    """
    ops: list[Op] = [["new", size]]
    held: dict[int, int] = {}
    for number in range(rounds):
        room = size - sum(held.values())
        if held and (room == 0 or rng.random() < 0.45):
            gone = rng.choice(sorted(held))
            ops.append(["give", gone, rng.random() < 0.5])
            del held[gone]
        else:
            count = min(room, rng.randint(1, max(1, int(size * share))))
            ops.append(["take", number, count])
            held[number] = count
    return ops


def one_by_one(rng: random.Random, size: int) -> list[Op]:
    pages = rng.sample(range(size), size)
    ops: list[Op] = [["new", size], ["allocate", size]]
    for page in pages[: size - 2]:
        ops.append(["free", [page]])
    return [*ops, ["allocate", 3], ["allocate", size - 5]]


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, *ops: Op) -> Case:
        return Case(zh, en, ops=list(ops))

    size = rng.randint(6, 12)
    place = rng.randint(1, size - 3)
    gap = holes(4, 7, size=10)  # 0-3, 5-6, 8-9
    full: list[Op] = [["new", size], ["allocate", size]]
    return {
        "sample": [
            one(
                "拆散、合并，再重复归还",
                "taken apart, merged, and a page that is freed twice",
                ["new", 10],
                ["allocate", 3],
                ["allocate", 4],
                ["free", [0, 2]],
                ["allocate", 2],
                ["allocate", 3],
                ["free", [1, 5, 3, 4]],
                ["free", [6, 4, 0]],
            )
        ],
        "basic": [
            one("从头切", "cut from the front", ["new", size], ["allocate", 2], ["allocate", 3]),
            one("最短的够用的段", "the shortest run that is enough", *gap, ["allocate", 2]),
            one("刚好一样长", "a run that fits exactly", *gap, ["allocate", 4], ["allocate", 2]),
            one("没有一段够长", "no run is enough", *gap, ["allocate", 5]),
            one("归还后再分配", "freed, then taken", *full, ["free", [1, 2]], ["allocate", 2]),
            one(
                "补上一个洞，前后两段接成一段",
                "a hole is filled, and the runs on both sides become one",
                *holes(2, size=10),
                ["free", [2]],
                ["allocate", 8],
            ),
            one("重复归还", "freed twice", *full, ["free", [place]], ["free", [place]]),
        ],
        "edge": [
            one("一页也不要", "no page", ["new", size], ["allocate", 0], ["free", []]),
            one("空池", "an empty pool", ["new", 0], ["allocate", 0], ["allocate", 1]),
            one("只有一页", "one page", ["new", 1], ["allocate", 1], ["free", [0]], ["free", [0]]),
            one("要得太多，什么也不变", "too many: nothing changes", *gap, ["allocate", 9]),
            one("一页不剩时再要", "none left", *full, ["allocate", 1], ["free", [place]]),
            one(
                "一样长时取靠前的",
                "the first among equals",
                *holes(2, 5, size=8),
                ["allocate", 2],
                ["allocate", 2],
            ),
            one(
                "都不够长，取最靠前的最长段",
                "not enough, and the longest comes twice",
                *holes(1, 5, 9, size=12),  # 0, 2-4, 6-8, 10-11
                ["allocate", 5],
            ),
            one(
                "用掉最长的，余下的再找最合适的",
                "after the longest the rest is fitted again",
                *holes(3, 8, 10, size=12),  # 0-2, 4-7, 9, 11
                ["allocate", 5],
            ),
            one(
                "三段才凑够",
                "three runs are needed",
                *holes(1, 4, 8, size=11),  # 0, 2-3, 5-7, 9-10
                ["allocate", 6],
                ["allocate", 2],
            ),
            one(
                "乱序归还，接成一段",
                "freed in any order, one run again",
                *full,
                ["free", rng.sample(range(size), size)],
                ["allocate", size],
            ),
            one("和前一段接上", "joins the run before", *full, ["free", [2, 3]], ["allocate", 2]),
            one("和后一段接上", "joins the run behind", *full, ["free", [3, 2]], ["allocate", 2]),
            one(
                "两段之间还隔着一页",
                "one page still lies between",
                *full,
                ["free", [1, 3]],
                ["allocate", 2],
            ),
            one("重复归还段里的页", "free already, within a run", ["new", 9], ["free", [5]]),
            one(
                "重复归还段首", "free already, first of a run", *gap, ["free", [5]], ["allocate", 4]
            ),
            one(
                "重复归还段尾", "free already, last of a run", *gap, ["free", [3]], ["allocate", 4]
            ),
            one(
                "同一次调用里重复",
                "twice within one call",
                *full,
                ["free", [place, place + 1, place]],
                ["allocate", 2],
            ),
            one(
                "重复的页在中间：前面的已归还，后面的没有",
                "the second of three is free already: the first is taken back, the third is not",
                *gap,
                ["free", [7, 2, 4]],
                ["allocate", 5],
            ),
            one("页由生成器给出", "pages from a generator", *full, ["free_iter", [3, 0, 1]]),
            one("一页一页地归还", "freed one by one", *one_by_one(rng, size + 4)),
        ],
        "random": [
            one("请求来来去去", "requests come and go", *drawn(rng, rng.randint(8, 40), 24, 0.4))
            for _ in range(6)
        ],
        "large": [one("大池，许多请求", "a large pool", *drawn(rng, 500, 120, 0.15))],
    }

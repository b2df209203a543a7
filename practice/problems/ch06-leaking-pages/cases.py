"""Requests that are admitted, run for some rounds and end, sooner or later, in a small pool."""

import random
from typing import Any

from practice.judgelib.cases import Case

Op = list[Any]


def life(name: str, row: int, prompt: int, output: int, rounds: int) -> list[Op]:
    return [["admit", name, row, prompt, output], ["run", name, rounds], ["finish", name]]


def pool(num_pages: int, page_size: int, rows: int = 3, longest: int = 24) -> Op:
    return ["new", num_pages, page_size, rows, longest]


def drawn(rng: random.Random, page_size: int, num_pages: int, steps: int) -> list[Op]:
    """Requests of random lengths; some are refused for want of pages, most stop early."""
    rows, longest = 4, 4 * page_size + 12
    ops = [pool(num_pages, page_size, rows, longest)]
    free_rows, running = list(range(rows)), {}
    taken = 0
    for step in range(steps):
        if free_rows and (not running or rng.random() < 0.5):
            prompt = rng.randint(1, longest - 6)
            output = rng.randint(1, min(longest - prompt, 2 * page_size + 4))
            pages = -(-(prompt + output - 1) // page_size)
            name, row = f"r{step}", rng.choice(free_rows)
            ops.append(["admit", name, row, prompt, output])
            if pages <= num_pages - taken:
                free_rows.remove(row)
                running[name] = row, pages, output
                taken += pages
        elif running:
            name = rng.choice(sorted(running))
            row, pages, output = running.pop(name)
            ops += [["run", name, rng.randint(1, output)], ["finish", name]]
            free_rows.append(row)
            taken -= pages
    return ops


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, *ops: Op) -> Case:
        return Case(zh, en, ops=list(ops))

    n = rng.randint(2, 5)
    return {
        "sample": [
            one(
                "一个请求提前停止，下一个接着用",
                "a request that stops early, and the next one",
                pool(5, 4, rows=2, longest=18),
                *life("a", 0, 6, 9, 2),
                ["admit", "b", 1, 3, 4],
            )
        ],
        "basic": [
            one("生成到上限", "to the limit", pool(9, 3), *life("a", 0, 5, n, n)),
            one("一轮就停", "ends after one round", pool(10, 3), *life("a", 1, n, 12, 1)),
            one("每页一个 token", "one token a page", pool(20, 1), *life("a", 0, n, 7, 2)),
            one(
                "两个请求，先来的先走",
                "two requests, the first ends first",
                pool(12, 3),
                ["admit", "a", 0, 4, 9],
                ["admit", "b", 2, n, 6],
                ["run", "a", 3],
                ["finish", "a"],
                ["admit", "c", 1, 10, 5],
                ["finish", "b"],
            ),
            one(
                "同一行接连用",
                "one row after another use",
                pool(8, 4),
                *life("a", 1, 15, 5, 5),
                *life("b", 1, n, 3, 3),
            ),
        ],
        "edge": [
            one(
                "恰好占满几页",
                "exactly some pages",
                pool(6, 4),
                *life("a", 0, 8, 5, 5),
                ["admit", "b", 1, 20, 5],
            ),
            one("多一个 token", "one token more than a page", pool(6, 4), *life("a", 0, 8, 6, 6)),
            one(
                "页比请求大", "a page larger than the request", pool(3, 16), *life("a", 0, 3, 4, 1)
            ),
            one(
                "页大小 16，末页只用一个",
                "16 a page, one in the last",
                pool(4, 16),
                *life("a", 0, 13, 5, 5),
            ),
            one("池恰好装得下", "the pool just fits", pool(5, 3), ["admit", "a", 0, 9, 7]),
            one(
                "差一个 token 装不下，别的不受影响",
                "too long by one, and nobody else suffers",
                pool(5, 3),
                ["admit", "b", 1, 2, 2],
                ["admit", "a", 0, 9, 5],
                ["run", "b", 1],
                ["finish", "b"],
                ["admit", "a", 0, 9, 7],
            ),
            one("只生成一个", "one token to generate", pool(6, 4), *life("a", 0, 9, 1, 1)),
            one(
                "整行占满，末页伸出行外",
                "a row filled to its end, and a last page that goes on behind it",
                pool(4, 5, rows=2, longest=12),
                ["admit", "a", 0, 6, 7],
                ["admit", "b", 1, 2, 3],
                ["run", "a", 7],
                ["finish", "a"],
            ),
            one(
                "还没运行就结束",
                "ends before it runs",
                pool(7, 2),
                ["admit", "a", 0, 3, 8],
                ["finish", "a"],
                ["admit", "b", 0, 7, 8],
            ),
            one(
                "页不相邻",
                "pages that are scattered",
                pool(6, 2, longest=12),
                ["admit", "a", 0, 2, 3],
                ["admit", "b", 1, 1, 2],
                ["admit", "c", 2, 3, 4],
                ["finish", "a"],
                ["finish", "c"],
                ["admit", "d", 0, 4, 6],
                ["run", "d", 2],
                ["finish", "d"],
            ),
            one(
                "反复提前停止，池子不变小",
                "stopped early again and again: the pool stays as large",
                pool(12, 2),
                *[op for name in "abcdef" for op in life(name, 1, 3, 14, 2)],
                ["admit", "g", 0, 12, 13],
            ),
            one(
                "一批出错，全部重来",
                "a batch has failed, everything starts over",
                pool(6, 3),
                ["admit", "a", 0, n, 8],
                ["admit", "b", 1, 2, 2],
                ["run", "a", 1],
                ["reset"],
                *life("c", 1, 5, 9, 3),
            ),
        ],
        "random": [
            one("请求来来去去", "requests come and go", *drawn(rng, size, rng.randint(8, 24), 16))
            for size in (1, 2, 3, 5, 16)
        ],
        "large": [one("许多请求", "many requests", *drawn(rng, 4, 60, 60))],
    }

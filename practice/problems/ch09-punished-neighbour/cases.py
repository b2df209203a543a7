"""Batches in which some ask for penalties; all scores are eighths, so float32 computes exactly."""

import random
from typing import Any

from practice.judgelib.cases import Case

Request = list[Any]  # row of the token pool, parameters, prompt, generated
Row = list[float]

PLAIN: dict[str, Any] = {}
# Draws, and has only the best to draw from: of scores that differ, the order is still certain.
DRAWING: dict[str, Any] = {"temperature": 0.5, "min_p": 1.0}


def scores(rng: random.Random, vocab_size: int) -> Row:
    """Close to each other, positive and negative: a penalty moves many places."""
    return [eighths / 8 for eighths in rng.sample(range(-24, 25), vocab_size)]


def tokens(rng: random.Random, vocab_size: int, low: int, high: int) -> list[int]:
    return [rng.randrange(vocab_size) for _ in range(rng.randint(low, high))]


def asking(rng: random.Random) -> dict[str, Any]:
    every = {
        "repetition_penalty": rng.choice([0.5, 2.0, 4.0]),
        "presence_penalty": rng.choice([-2.0, -0.75, 0.5, 1.25, 2.0]),
        "frequency_penalty": rng.choice([-0.5, 0.25, 0.75, 1.5]),
    }
    names = rng.sample(sorted(every), rng.randint(1, 3))
    return {"temperature": 0.0} | {name: every[name] for name in names}


def drawn(
    rng: random.Random, vocab_size: int, asks: list[bool], others: dict[str, Any] = PLAIN
) -> list[Any]:
    """A batch of requests whose rows in the token pool are in no order."""
    places = rng.sample(range(len(asks) + 2), len(asks))
    requests = [
        [
            place,
            asking(rng) if ask else others,
            tokens(rng, vocab_size, 1, 6),
            tokens(rng, vocab_size, 0, 6),
        ]
        for place, ask in zip(places, asks, strict=True)
    ]
    return [vocab_size, requests, [scores(rng, vocab_size) for _ in asks]]


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, *batches: list[Any]) -> Case:
        return Case(zh, en, ops=list(batches))

    def alone(params: dict[str, Any], prompt: list[int], generated: list[int], row: Row) -> Any:
        return [len(row), [[0, params, prompt, generated]], [row]]

    row = [2.0, 1.5, 1.0, 0.5, -0.5, -1.0]
    rising = row[::-1]
    presence, frequency = {"presence_penalty": 1.25}, {"frequency_penalty": 0.75}
    repetition = {"repetition_penalty": 4.0}
    a, b, c, d, *_ = rng.sample(range(6), 6)
    return {
        "sample": [
            one(
                "第二个请求要惩罚",
                "the second request asks for a penalty",
                [3, [[1, PLAIN, [2], [0]], [0, presence, [2], [0]]], [[2.0, 1.5, 1.0]] * 2],
            )
        ],
        "basic": [
            one("单独一个：存在惩罚", "alone: presence", alone(presence, [c], [a, b], row)),
            one("单独一个：频率惩罚", "alone: frequency", alone(frequency, [c], [0, 0, 0, 4], row)),
            one("单独一个：重复惩罚", "alone: repetition", alone(repetition, [0, 4], [1], row)),
            one(
                "三个里的最后一个",
                "the last of three",
                [
                    6,
                    [[0, PLAIN, [a], [b]], [1, PLAIN, [b], [a]], [2, presence, [c], [0]]],
                    [row] * 3,
                ],
            ),
            one(
                "三个里的第一个",
                "the first of three",
                [
                    6,
                    [[2, presence, [c], [0]], [1, PLAIN, [b], [a]], [0, PLAIN, [a], [b]]],
                    [row] * 3,
                ],
            ),
        ],
        "edge": [
            one(
                "隔一个要一次",
                "every other request asks",
                drawn(rng, 8, [False, True, False, True, False]),
                drawn(rng, 8, [True, False, True, False, True]),
            ),
            one(
                "旁边的请求要抽样",
                "the neighbours are not greedy",
                drawn(rng, 8, [False, True, False, True], DRAWING),
                drawn(rng, 8, [False, False], DRAWING),
            ),
            one(
                "谁也不要，和人人都要",
                "nobody asks, and everybody asks",
                drawn(rng, 8, [False] * 3),
                drawn(rng, 8, [True] * 4),
            ),
            one(
                "提示词里的不算存在，也不算频率",
                "the prompt counts neither as presence nor as frequency",
                alone(presence, [0, 1, 0], [], row),
                alone(frequency, [0, 0, 1], [2], row),
                alone(presence | frequency, [0, a, b], [0, 0], row),
            ),
            one(
                "重复惩罚算上提示词，出现几次都一样",
                "repetition counts the prompt, and every token once",
                alone(repetition, [0, 0, 0, 1], [], row),
                alone({"repetition_penalty": 2.0}, [0, 1], [1, 1, 1, 2], row),
                alone({"repetition_penalty": 0.5}, [a, b], [c, c], rising),
            ),
            one(
                "负的 logit 乘，正的除",
                "negative scores are multiplied, positive ones divided",
                alone(repetition, [4], [0], row),
                alone({"repetition_penalty": 0.5}, [4, 5], [3], row),
            ),
            one(
                "先重复惩罚，再减",
                "repetition first, then the subtractions",
                alone(repetition | presence, [5], [0, 1], row),
                alone(repetition | presence | frequency, [d], [0, 0, 3, 4], row),
                alone({"repetition_penalty": 2.0, "presence_penalty": 1.0}, [5], [2], row),
            ),
            one(
                "负的惩罚是奖励",
                "a negative penalty is a reward",
                alone({"presence_penalty": -2.0}, [0], [5, 3], row),
                alone({"frequency_penalty": -0.5}, [0], [5, 5, 5, 4], row),
            ),
            one(
                "行里还留着别人的 token",
                "tokens of others lie behind the text",
                [
                    8,
                    [[3, frequency | repetition, [a], [b]], [5, PLAIN, [c], []]],
                    [scores(rng, 8), scores(rng, 8)],
                ],
            ),
        ],
        "random": [
            one(
                "随机的 batch",
                "random batches",
                *(
                    drawn(rng, 8, [rng.random() < 0.5 for _ in range(rng.randint(1, 6))])
                    for _ in range(3)
                ),
            )
            for _ in range(6)
        ],
        "large": [
            one(
                "三十个请求",
                "thirty requests",
                drawn(rng, 20, [rng.random() < 0.4 for _ in range(30)]),
            )
        ],
    }

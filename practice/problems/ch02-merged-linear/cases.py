"""Layers whose tensors come in any order. All numbers are small integers: products are exact."""

import random
from typing import Any

import torch

from practice.judgelib.cases import Case, randn

Op = list[Any]
QKV = {"q_proj": 4, "k_proj": 2, "v_proj": 2}


def whole(rng: random.Random, *shape: int) -> torch.Tensor:
    """Integers from -4 to 4, none of them 0, as float32."""
    generator = torch.Generator().manual_seed(rng.getrandbits(62))
    sizes = torch.randint(1, 5, shape, generator=generator)
    signs = torch.randint(0, 2, shape, generator=generator) * 2 - 1
    return (sizes * signs).float()


def names(members: dict[str, int], bias: bool) -> list[str]:
    kinds = ("weight", "bias") if bias else ("weight",)
    return [f"{member}.{kind}" for member in members for kind in kinds]


def load(rng: random.Random, columns: int, members: dict[str, int], part: str) -> Op:
    member, kind = part.split(".")
    shape = (members[member], columns) if kind == "weight" else (members[member],)
    return ["load", part, whole(rng, *shape)]


def life(
    rng: random.Random, columns: int, members: dict[str, int], bias: bool, order: list[str]
) -> list[Op]:
    """A layer, its tensors in this order, then a product of a few tokens."""
    loads = [load(rng, columns, members, part) for part in order]
    x = whole(rng, rng.randint(2, 5), columns)
    return [["new", columns, members, bias, "float32"], *loads, ["forward", x]]


def sample() -> list[Op]:
    return [
        ["new", 2, {"q": 2, "k": 1}, True, "float32"],
        ["load", "k.weight", torch.tensor([[5.0, 6.0]])],
        ["load", "q.bias", torch.tensor([10.0, 20.0])],
        ["load", "q.weight", torch.tensor([[1.0, 2.0], [3.0, 4.0]])],
        ["load", "k.bias", torch.tensor([30.0, 40.0])],
        ["forward", torch.tensor([[1.0, 1.0], [0.0, 2.0]])],
    ]


def drawn(rng: random.Random, most: int, largest: int) -> list[Op]:
    """Random members, in whose names the alphabet has no part; some tensors come twice."""
    letters = rng.sample("abcdefgh", rng.randint(2, most))
    members = {f"{letter}_proj": rng.randint(1, largest) for letter in letters}
    bias = rng.random() < 0.6
    order = names(members, bias)
    order += rng.sample(order, rng.randint(0, 2))
    rng.shuffle(order)
    return life(rng, rng.randint(2, largest), members, bias, order)


def refused(rng: random.Random, part: str, *shape: int) -> list[Op]:
    """A good layer that is then offered a tensor of this shape."""
    ops = life(rng, 3, QKV, True, names(QKV, True))
    return [*ops[:-1], ["load", part, whole(rng, *shape)], ops[-1]]


def rounded(rng: random.Random) -> list[Op]:
    members = {"gate_proj": 3, "up_proj": 3}
    loads: list[Op] = [["load", f"{name}.weight", randn(rng, 3, 5)] for name in members]
    return [["new", 5, members, False, "bfloat16"], *loads]


def cases(rng: random.Random) -> dict[str, list[Case]]:
    def one(zh: str, en: str, ops: list[Op]) -> Case:
        return Case(zh, en, ops=ops)

    no_bias = names(QKV, False)
    with_bias = names(QKV, True)
    gate_up = {"up_proj": 3, "gate_proj": 3}
    prefixes = {"query": 2, "q": 3, "query_norm": 1}
    again = [*no_bias, "k_proj.weight", "q_proj.weight"]
    alone = {"only": rng.randint(2, 5)}
    empty = life(rng, 3, QKV, True, with_bias)
    empty[-1] = ["forward", torch.zeros(0, 3)]
    return {
        "sample": [
            one(
                "两个成员，最后的偏置形状不对",
                "two members; the last bias has the wrong shape",
                sample(),
            )
        ],
        "basic": [
            one("按次序到达", "in order", life(rng, 3, QKV, False, no_bias)),
            one("倒着到达", "backwards", life(rng, 3, QKV, False, no_bias[::-1])),
            one(
                "有偏置，倒着到达",
                "with biases, backwards",
                life(rng, 3, QKV, True, with_bias[::-1]),
            ),
            one(
                "两个成员一样大",
                "two members of the same size",
                life(rng, 4, gate_up, False, ["gate_proj.weight", "up_proj.weight"]),
            ),
        ],
        "edge": [
            one("只有一个成员", "a single member", life(rng, 2, alone, True, names(alone, True))),
            one(
                "成员都只有一行",
                "members of one row",
                life(rng, 3, {"b": 1, "a": 1}, True, ["a.bias", "b.weight", "a.weight", "b.bias"]),
            ),
            one(
                "一个成员名是另一个的开头",
                "a name that begins another",
                life(rng, 2, prefixes, True, names(prefixes, True)[::-1]),
            ),
            one("同一个名字来两次", "tensors that come again", life(rng, 3, QKV, False, again)),
            one("只到了一部分", "some have not come yet", life(rng, 3, QKV, False, no_bias[1:2])),
            one("没有 token", "no tokens", empty),
            one("转成 bfloat16", "converted to bfloat16", rounded(rng)),
            one("少一行", "a row is missing", refused(rng, "q_proj.weight", 3, 3)),
            one("转置了", "the weight is transposed", refused(rng, "q_proj.weight", 3, 4)),
            one(
                "能广播的一行",
                "one row, which would broadcast",
                refused(rng, "k_proj.weight", 1, 3),
            ),
            one("没有行的那一维", "no axis of rows", refused(rng, "v_proj.weight", 3)),
            one(
                "能广播的一个数",
                "one number, which would broadcast",
                refused(rng, "q_proj.bias", 1),
            ),
            one("偏置多一维", "a bias with one axis more", refused(rng, "k_proj.bias", 1, 2)),
            one("别的成员的偏置", "the bias of another member", refused(rng, "k_proj.bias", 4)),
        ],
        "random": [
            one("随机成员，随机先后", "random members in random order", drawn(rng, 4, 6))
            for _ in range(5)
        ],
        "large": [one("大一些的层", "a larger layer", drawn(rng, 6, 24))],
    }

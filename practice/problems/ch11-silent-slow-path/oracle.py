"""Nothing is computed: all products are right, and whoever has packed reads that alone."""

from typing import Any

from practice.judgelib.cases import Case

COUNTS = (1, 4, 16, 64, 256)


def expected(case: Case) -> list[dict[str, Any]]:
    results = []
    for name, flags, _seed, _shape, counts, _with_bias, _forgets in case.ops:
        packs = name in ("oneDNN", "MKL")
        read = []
        for rows in counts:
            if flags and not flags[sum(rows > count for count in COUNTS[:-1])]:
                read.append("plain")
            elif packs:
                read.append("packed")
        packed = int(packs and (not flags or any(flags)))
        results.append({"right": [True] * len(counts), "read": read, "packed": [packed, 0]})
    return results

"""Every page has an owner here, or none; what a request has is never read from the page table."""

from typing import Any

from practice.judgelib.cases import Case


class Pool:
    def __init__(self, num_pages: int, page_size: int, _num_rows: int, _longest: int) -> None:
        self.owner: list[str | None] = [None] * num_pages
        self.page_size = page_size
        self.known: dict[str, int] = {}

    def free_pages(self) -> list[int]:
        return [page for page, owner in enumerate(self.owner) if owner is None]

    def admit(self, name: str, _row: int, prompt: int, output: int) -> dict[str, Any]:
        free = self.free_pages()
        pages: list[int] = []
        locations: list[int] = []
        for token in range(prompt + output - 1):
            if token % self.page_size == 0:  # the page before is full
                if not free:
                    return {"admitted": False}
                pages.append(free.pop())
            locations.append(pages[-1] * self.page_size + token % self.page_size)
        for page in pages:
            self.owner[page] = name
        self.known[name] = prompt
        return {"admitted": True, "pages": pages, "places": locations}

    def run(self, name: str, rounds: int) -> dict[str, Any]:
        self.known[name] += rounds
        return {"device_len": self.known[name]}

    def finish(self, name: str) -> dict[str, Any]:
        self.owner = [None if owner == name else owner for owner in self.owner]
        return {}

    def reset(self) -> dict[str, Any]:
        self.owner = [None] * len(self.owner)
        return {}


def expected(case: Case) -> list[dict[str, Any]]:
    results = []
    state: Pool | None = None
    for name, *values in case.ops:
        seen: dict[str, Any] = {}
        if name == "new":
            state = Pool(*values)
        assert state is not None
        if name != "new":
            seen = getattr(state, name)(*values)
        results.append({**seen, "free_pages": state.free_pages(), "moved": []})
    return results

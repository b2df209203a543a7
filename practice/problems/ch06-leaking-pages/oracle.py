"""Every page has an owner here, or none; what a request has is never read from the page table."""

from typing import Any

from practice.judgelib.cases import Case


class Pool:
    def __init__(self, num_pages: int, page_size: int, num_rows: int, longest: int) -> None:
        self.owner: list[str | None] = [None] * num_pages
        self.page_size = page_size
        self.rows = [[-1] * longest for _ in range(num_rows)]
        self.lengths: dict[str, list[int]] = {}

    def free_pages(self) -> list[int]:
        return [page for page, owner in enumerate(self.owner) if owner is None]

    def fits(self, num_tokens: int) -> bool:
        return num_tokens <= len(self.free_pages()) * self.page_size

    def next_pages(self, count: int) -> list[int]:
        """As the allocator of the step does: the shortest run that is enough, or the longest."""
        runs: list[list[int]] = []
        for page in self.free_pages():
            if runs and runs[-1][-1] == page - 1:
                runs[-1].append(page)
            else:
                runs.append([page])
        enough = [run for run in runs if len(run) >= count]
        return (min(enough, key=len) if enough else max(runs, key=len))[:count]

    def admit(self, name: str, row: int, prompt: int, output: int) -> dict[str, Any]:
        if not self.fits(prompt + output):
            return {"admitted": False}
        locations: list[int] = []
        while len(locations) < prompt + output:
            missing = prompt + output - len(locations)
            pages = self.next_pages((missing + self.page_size - 1) // self.page_size)
            for page in pages:
                self.owner[page] = name
                locations += [page * self.page_size + at for at in range(self.page_size)]
        for token in range(prompt + output):
            self.rows[row][token] = locations[token]
        self.lengths[name] = [prompt, prompt + output]
        return {"admitted": True, "row": list(self.rows[row]), "other_rows_kept": True}

    def run(self, name: str, rounds: int) -> dict[str, Any]:
        self.lengths[name][0] += rounds
        return dict(zip(("device_len", "max_device_len"), self.lengths[name], strict=True))

    def finish(self, name: str) -> dict[str, Any]:
        self.owner = [None if owner == name else owner for owner in self.owner]
        return {}


def expected(case: Case) -> list[dict[str, Any]]:
    results = []
    state: Pool | None = None
    for name, *values in case.ops:
        seen: dict[str, Any] = {}
        if name == "new":
            state = Pool(*values)
        assert state is not None
        if name == "can":
            seen = {"can_allocate": state.fits(values[0])}
        elif name != "new":
            seen = getattr(state, name)(*values)
        results.append({**seen, "free_pages": state.free_pages()})
    return results

"""What a submission prints: two pipes, read as it goes, with one bound on both together."""

import os

CHUNK = 1 << 16


class Outputs:
    """The judge's ends of a child's stdout and stderr."""

    def __init__(self, limit_bytes: int) -> None:
        self._left = limit_bytes
        self._texts: dict[int, bytearray] = {}
        self._marks: list[int] = []
        self.theirs: list[int] = []
        for _ in ("stdout", "stderr"):
            ours, theirs = os.pipe()
            os.set_blocking(ours, False)
            self._texts[ours] = bytearray()
            self.theirs.append(theirs)
        self.open = set(self._texts)

    @property
    def overflowed(self) -> bool:
        """Whether more was printed than may be; what was too much is not kept."""
        return self._left < 0

    def read(self, number: int) -> None:
        """Take what one pipe holds now; at its end, or past the bound, it leaves `open`."""
        while number in self.open:
            try:
                data = os.read(number, CHUNK)
            except BlockingIOError:
                return
            self._texts[number] += data[: max(0, self._left)]
            self._left -= len(data)
            if not data or self.overflowed:
                self.open.discard(number)

    def read_all(self) -> None:
        """Take what both pipes hold now."""
        for number in list(self.open):
            self.read(number)

    def close_theirs(self) -> None:
        """Close the child's ends here, once the child has its own."""
        for number in self.theirs:
            os.close(number)
        self.theirs = []

    def mark(self) -> None:
        """What stdout has got by now was printed before this point."""
        self.read_all()
        self._marks.append(len(next(iter(self._texts.values()))))

    def close(self) -> tuple[list[str], str]:
        """Close all and return what was printed to stdout, cut at the marks, and to stderr."""
        self.read_all()
        self.close_theirs()
        for number in self._texts:
            os.close(number)
        stdout, stderr = map(bytes, self._texts.values())
        cuts = zip([0, *self._marks], [*self._marks, None], strict=True)
        parts = [stdout[start:end].decode("utf-8", "replace") for start, end in cuts]
        return parts, stderr.decode("utf-8", "replace")

"""Which prefixes are known, in whole pages."""


class PrefixSet:
    def __init__(self, page_size: int) -> None:
        raise NotImplementedError("ch08-prefix-set: __init__")

    def insert(self, ids: list[int]) -> int:
        """Remember the whole pages of ids; how many of them were new."""
        raise NotImplementedError("ch08-prefix-set: insert")

    def match(self, ids: list[int]) -> int:
        """How many tokens at the start of ids are known, in whole pages."""
        raise NotImplementedError("ch08-prefix-set: match")

    def forget(self, ids: list[int]) -> int:
        """Forget known pages of ids from the end, up to one that others build on; how many went."""
        raise NotImplementedError("ch08-prefix-set: forget")

    def num_pages(self) -> int:
        """How many pages are known."""
        raise NotImplementedError("ch08-prefix-set: num_pages")

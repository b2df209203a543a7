# One flat table: a page is known by its tokens and the number of the page before it.
class PrefixSet:
    def __init__(self, page_size):
        self.page_size = page_size
        self._numbers = {}
        self._followers = {0: 0}
        self._next = 1

    def _keys(self, ids):
        """Known keys of the text, and the tokens of the pages after them."""
        size = self.page_size
        pages = [tuple(ids[index * size :][:size]) for index in range(len(ids) // size)]
        number, known = 0, []
        while len(known) < len(pages) and (number, pages[len(known)]) in self._numbers:
            known.append((number, pages[len(known)]))
            number = self._numbers[known[-1]]
        return known, number, pages[len(known) :]

    def insert(self, ids):
        _, number, rest = self._keys(ids)
        for page in rest:
            self._numbers[number, page] = self._next
            self._followers[number] += 1
            number = self._next
            self._followers[number] = 0
            self._next += 1
        return len(rest)

    def match(self, ids):
        return self.page_size * len(self._keys(ids)[0])

    def forget(self, ids):
        known, _, _ = self._keys(ids)
        before = len(self._numbers)
        while known and self._followers[self._numbers[known[-1]]] == 0:
            key = known.pop()
            del self._followers[self._numbers.pop(key)]
            self._followers[key[0]] -= 1
        return before - len(self._numbers)

    def num_pages(self):
        return len(self._numbers)

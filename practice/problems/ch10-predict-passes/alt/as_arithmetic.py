# The same answers with the way to them.
"""A batch takes as many passes as its longest output: 5, 3 and 4."""

first_static = [1, 1, 5 + 1, 5 + 1, 5 + 3 + 1]
passes_static = 5 + 3 + 4
alone_static = 3 + 2 + 4
first_continuous = [1, 1, 3, 6, 7]
passes_continuous = 4 + 6
last_of_b = [5, 5 + 3]
first_pages = [1, 1, 3 + 1, 5 + 1]
last_of_s = 6 + 2
first_alike = [1, 2, 2]
computed_alike = [50, 45 - 32, 60 - 32]

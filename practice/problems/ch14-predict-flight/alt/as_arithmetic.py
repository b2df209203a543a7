# The same answers with the way to them.
"""Overlapped, the passes are ABC, AB, ABD, ABD, D."""

rows_in_turn = [3, 3, 3, 1]
rows_overlapped = [3, 3 - 1, 2 + 1, 2 + 1, 1]
thrown_away = 1 + 1
first_of_d = [1 + 1, 2 + 1]
lengths_of_b = [7 + 3 - 1, 7 + 3, 7 + 2]
freed = [4 + 1, 4 + 1, 1 + 1, 5 + 1]
kept_of_b = (7 + 3 - 1) // 5
rows_of_group = [2, 2, 2 - 1]
tokens_of_e = [2, 2 - 1]
freed_e = [3, 3]

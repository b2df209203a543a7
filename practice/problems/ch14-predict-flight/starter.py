"""Your answers. Steps and passes are counted from 1; lists are in the order of the requests."""

rows_in_turn = None
rows_overlapped = None
thrown_away = None
first_of_d = None
lengths_of_b = None
freed = None
kept_of_b = None
rows_of_group = None
tokens_of_e = None
freed_e = None

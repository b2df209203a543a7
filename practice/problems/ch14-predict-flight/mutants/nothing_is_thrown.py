# Thinks that an end token is known in time.
# caught by: sample
rows_in_turn = [3, 3, 3, 1]
rows_overlapped = [3, 2, 3, 2]
thrown_away = 0
first_of_d = [2, 3]
lengths_of_b = [9, 10, 9]
freed = [5, 4, 2, 5]
kept_of_b = 1
rows_of_group = [2, 2, 1]
tokens_of_e = [2, 1]
freed_e = [3, 3]

# Thinks that an aborted request is in one more pass.
# caught by: sample
rows_in_turn = [3, 3, 3, 1]
rows_overlapped = [3, 2, 3, 3, 1]
thrown_away = 2
first_of_d = [2, 3]
lengths_of_b = [9, 10, 9]
freed = [5, 5, 2, 6]
kept_of_b = 1
rows_of_group = [2, 2, 2]
tokens_of_e = [2, 1]
freed_e = [3, 4]

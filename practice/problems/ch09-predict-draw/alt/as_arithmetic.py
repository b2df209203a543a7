# The same answers with the way to them.
"""Sums are in 32nds; what stays is listed by number."""

top_k_3 = [1, 2, 4, 5]
top_p_9_16 = [1, 4]
top_p_06 = [1, 2, 4, 5]
top_k_2_top_p_055 = [1]
min_p_02 = [0, 1, 2, 4, 5, 6]
drawn_from_all = 1 + 2
drawn_from_top_p_06 = 1 + 1
order = [0, 1, 4, 2, 3]
index = 17 - 12
index_again = 17 - 12

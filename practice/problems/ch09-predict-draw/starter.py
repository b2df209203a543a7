"""Your answers. What stays is a list of token numbers, the smallest first."""

top_k_3 = None
top_p_9_16 = None
top_p_06 = None
top_k_2_top_p_055 = None
min_p_02 = None
drawn_from_all = None
drawn_from_top_p_06 = None
order = None
index = None
index_again = None

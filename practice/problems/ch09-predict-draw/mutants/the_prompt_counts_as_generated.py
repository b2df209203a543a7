# Subtracts the penalties for tokens of the prompt too.
# caught by: sample
top_k_3 = [1, 2, 4, 5]
top_p_9_16 = [1, 4]
top_p_06 = [1, 2, 4, 5]
top_k_2_top_p_055 = [1]
min_p_02 = [0, 1, 2, 4, 5, 6]
drawn_from_all = 3
drawn_from_top_p_06 = 2
order = [0, 2, 4, 1, 3]
index = 5
index_again = 5

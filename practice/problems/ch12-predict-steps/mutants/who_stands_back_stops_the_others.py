# Lets nobody past U.
# caught by: sample
pieces_of_l = [14, 14, 14, 8]
first_of_l = 4
first_of_s = 5
tokens_of_steps = [16, 16, 16, 16, 6]
rows_of_logits = [2, 2, 2, 3, 4]
first_of_p = 6
tokens_beside_many = 6
first_known = [2, 3]
pieces_of_r = [12, 18]
first_alike = [3, 4, 5]
computed_of_u = 13

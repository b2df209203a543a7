# The same answers with the way to them.
"""Two decode, so 16 - 2 tokens are left for prompts."""

pieces_of_l = [16 - 2, 14, 14, 50 - 3 * 14]
first_of_l = 4
first_of_s = 4 + 1
tokens_of_steps = [2 + 14, 16, 16, 2 + 8 + 6, 3 + 3]
rows_of_logits = [2, 2, 2, 2 + 1, 2 + 1 + 1]
first_of_p = 6
tokens_beside_many = 5 + 1
first_known = [2, 3]
pieces_of_r = [20 - 8, 30 - 12]
first_alike = [3, 3 + 1, 3]
computed_of_u = 45 - 32

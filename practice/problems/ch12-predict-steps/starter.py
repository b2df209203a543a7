"""Your answers. Steps are counted from 1; lists of steps go from step 1 on."""

pieces_of_l = None
first_of_l = None
first_of_s = None
tokens_of_steps = None
rows_of_logits = None
first_of_p = None
tokens_beside_many = None
first_known = None
pieces_of_r = None
first_alike = None
computed_of_u = None

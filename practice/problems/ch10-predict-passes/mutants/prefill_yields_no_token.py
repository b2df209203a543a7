# Thinks that a prefill yields no token yet.
# caught by: sample
first_static = [2, 2, 8, 8, 12]
passes_static = 12
alone_static = 9
first_continuous = [2, 2, 4, 7, 8]
passes_continuous = 10
last_of_b = [5, 8]
first_pages = [1, 1, 4, 6]
last_of_s = 8
first_alike = [1, 2, 2]
computed_alike = [50, 13, 28]

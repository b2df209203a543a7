# Lets others join a static batch as soon as a row is free.
# caught by: sample
first_static = [1, 1, 3, 6, 7]
passes_static = 10
alone_static = 9
first_continuous = [1, 1, 3, 6, 7]
passes_continuous = 10
last_of_b = [5, 8]
first_pages = [1, 1, 4, 6]
last_of_s = 8
first_alike = [1, 2, 2]
computed_alike = [50, 13, 28]

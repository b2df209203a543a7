# Gives a row away in the very pass in which its request ends.
# caught by: sample
first_static = [1, 1, 6, 6, 9]
passes_static = 12
alone_static = 9
first_continuous = [1, 1, 2, 5, 5]
passes_continuous = 10
last_of_b = [5, 8]
first_pages = [1, 1, 4, 6]
last_of_s = 8
first_alike = [1, 2, 2]
computed_alike = [50, 13, 28]

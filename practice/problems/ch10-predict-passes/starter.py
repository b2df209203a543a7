"""Your answers. Lists are in the order of the requests; passes are counted from 1."""

first_static = None
passes_static = None
alone_static = None
first_continuous = None
passes_continuous = None
last_of_b = None
first_pages = None
last_of_s = None
first_alike = None
computed_alike = None

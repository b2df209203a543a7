# The same answers with the way to them.
"""Pages of two tokens: each length is twice a number of pages."""

left = [0, 20]
evicted_10 = [4 - 3, 4 - 2, 4 - 1]
evicted_7 = [13, 21]
room_6 = (4, 1 + 2)
cached_2 = 2 * 2
cached_4 = 2 * 1
cached_9 = 2 * 1
pages_3 = [0, 1, 2, 10 + 3]
nodes_3 = 1 + 1 + 2
nodes_4 = 4 + 1

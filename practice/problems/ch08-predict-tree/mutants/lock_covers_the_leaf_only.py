# Locks the last node only, not the path above it.
# caught by: sample
cached_2 = 4
pages_3 = [0, 1, 2, 13]
nodes_3 = 4
cached_4 = 2
nodes_4 = 5
room_6 = (1, 6)
evicted_7 = [13, 21]
cached_9 = 2
evicted_10 = [1, 2, 3]
left = [0, 20]

# Thinks that an insert puts its own pages in the place of the known ones.
# caught by: sample
cached_2 = 4
pages_3 = [10, 11, 12, 13]
nodes_3 = 4
cached_4 = 2
nodes_4 = 5
room_6 = (4, 3)
evicted_7 = [13, 21]
cached_9 = 2
evicted_10 = [1, 2, 3]
left = [10, 20]

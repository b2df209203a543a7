# Evicts a text from its beginning.
# caught by: sample
cached_2 = 4
pages_3 = [0, 1, 2, 13]
nodes_3 = 4
cached_4 = 2
nodes_4 = 5
room_6 = (4, 3)
evicted_7 = [13, 20]
cached_9 = 0
evicted_10 = [1, 2, 3]
left = [0, 21]

# Evicts what was used most recently.
# caught by: sample
cached_2 = 4
pages_3 = [0, 1, 2, 13]
nodes_3 = 4
cached_4 = 2
nodes_4 = 5
room_6 = (4, 3)
evicted_7 = [20, 21]
cached_9 = 0
evicted_10 = [2, 3, 13]
left = [0, 1]

# Counts the tokens that agree, although they fill no page.
# caught by: sample
cached_2 = 4
pages_3 = [0, 1, 2, 13]
nodes_3 = 4
cached_4 = 3
nodes_4 = 5
room_6 = (4, 3)
evicted_7 = [13, 21]
cached_9 = 2
evicted_10 = [1, 2, 3]
left = [0, 20]

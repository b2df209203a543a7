"""Your answers. `room_6` is (num_locked, num_evictable); pages are ascending lists."""

cached_2 = None
pages_3 = None
nodes_3 = None
cached_4 = None
nodes_4 = None
room_6 = None
evicted_7 = None
cached_9 = None
evicted_10 = None
left = None

# Counts the keys and forgets the values.
# caught by: sample
extend_lens = [7, 1, 1, 1]
last_positions = [6, 7, 8, 9]
never_computed = 10
last_location = 8201
bytes_per_token = 6144
bytes_used = 61440
bytes_reserved = 100663296
tokens_computed = 10
tokens_without_cache = 34

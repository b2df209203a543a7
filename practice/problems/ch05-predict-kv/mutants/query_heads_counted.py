# Keeps KV for every query head.
# caught by: sample
extend_lens = [7, 1, 1, 1]
last_positions = [6, 7, 8, 9]
never_computed = 10
last_location = 8201
bytes_per_token = 86016
bytes_used = 860160
bytes_reserved = 1409286144
tokens_computed = 10
tokens_without_cache = 34

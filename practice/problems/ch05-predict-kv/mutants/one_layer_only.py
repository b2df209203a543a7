# Counts one layer: each of them keeps keys and values of its own.
# caught by: sample
extend_lens = [7, 1, 1, 1]
last_positions = [6, 7, 8, 9]
never_computed = 10
last_location = 8201
bytes_per_token = 512
bytes_used = 5120
bytes_reserved = 8388608
tokens_computed = 10
tokens_without_cache = 34

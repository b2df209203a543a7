# Forgets that the prefill yields the first token.
# caught by: sample
extend_lens = [7, 1, 1, 1, 1]
last_positions = [6, 7, 8, 9, 10]
never_computed = 10
last_location = 8201
bytes_per_token = 12288
bytes_used = 122880
bytes_reserved = 201326592
tokens_computed = 10
tokens_without_cache = 34

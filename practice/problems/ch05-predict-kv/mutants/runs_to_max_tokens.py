# Goes on to max_tokens, although the EOS ends it.
# caught by: sample
extend_lens = [7, 1, 1, 1, 1, 1]
last_positions = [6, 7, 8, 9, 10, 11]
never_computed = 12
last_location = 8203
bytes_per_token = 12288
bytes_used = 147456
bytes_reserved = 201326592
tokens_computed = 12
tokens_without_cache = 57

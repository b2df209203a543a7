# Computes KV for the EOS, which is only an output.
# caught by: sample
extend_lens = [7, 1, 1, 1, 1]
last_positions = [6, 7, 8, 9, 10]
never_computed = 11
last_location = 8202
bytes_per_token = 12288
bytes_used = 135168
bytes_reserved = 201326592
tokens_computed = 11
tokens_without_cache = 45

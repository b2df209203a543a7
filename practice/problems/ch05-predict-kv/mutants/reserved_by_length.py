# Thinks that memory is reserved for prompt and max_tokens, not for max_seq_len.
# caught by: sample
extend_lens = [7, 1, 1, 1]
last_positions = [6, 7, 8, 9]
never_computed = 10
last_location = 8201
bytes_per_token = 12288
bytes_used = 122880
bytes_reserved = 159744
tokens_computed = 10
tokens_without_cache = 34

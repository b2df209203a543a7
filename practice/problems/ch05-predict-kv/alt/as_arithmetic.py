# The same answers with the way to them.
"""Every number from the trace."""

tokens_without_cache = 7 + 8 + 9 + 10
tokens_computed = 7 + 1 + 1 + 1
bytes_per_token = 2 * 24 * 2 * 64 * 2
bytes_used = 10 * 2 * 24 * 2 * 64 * 2
bytes_reserved = 4 * 4096 * 2 * 24 * 2 * 64 * 2
last_location = 2 * 4096 + 9
never_computed = 7 + 4 - 1
last_positions = [7 - 1, 7, 7 + 1, 7 + 2]
extend_lens = [7, 1, 1, 1]

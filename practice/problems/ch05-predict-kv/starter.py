"""Your answers. A list has one number per round, the prefill first."""

extend_lens = None
last_positions = None
never_computed = None
last_location = None
bytes_per_token = None
bytes_used = None
bytes_reserved = None
tokens_computed = None
tokens_without_cache = None

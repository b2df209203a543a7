"""Your answers. Lists are in the order of the question; milliseconds are whole numbers."""

read_ms = None
ridge_rows = None
fp32_ms = None
imitated_ms = None
bf16_ms = None
imitating_pays = None
tokens_per_second = None
intensity = None
plain_gflop_s = None
plain_is_slower = None

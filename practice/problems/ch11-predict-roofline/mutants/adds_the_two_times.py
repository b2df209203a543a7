# Adds reading and computing, which go on at the same time.
# caught by: sample
read_ms = [32, 16, 16]
ridge_rows = [32, 4, 64]
fp32_ms = [33, 40, 64, 132]
imitated_ms = [20, 48, 144, 416]
bf16_ms = [16, 16, 16, 25]
imitating_pays = [True, True, False, False]
tokens_per_second = [250, 1000, 1000, 1000]
intensity = [4, 8]
plain_gflop_s = 32
plain_is_slower = 2

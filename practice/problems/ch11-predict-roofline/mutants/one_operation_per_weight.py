# Counts a multiplication and forgets the addition.
# caught by: sample
read_ms = [32, 16, 16]
ridge_rows = [64, 8, 128]
fp32_ms = [32, 32, 32, 50]
imitated_ms = [16, 32, 128, 400]
bf16_ms = [16, 16, 16, 25]
imitating_pays = [True, True, False, False]
tokens_per_second = [250, 1000, 1000, 1000]
intensity = [4, 8]
plain_gflop_s = 32
plain_is_slower = 2

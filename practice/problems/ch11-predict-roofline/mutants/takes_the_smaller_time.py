# Takes the smaller of the two times.
# caught by: sample
read_ms = [32, 16, 16]
ridge_rows = [32, 4, 64]
fp32_ms = [1, 8, 32, 32]
imitated_ms = [16, 32, 128, 400]
bf16_ms = [16, 16, 16, 25]
imitating_pays = [True, True, False, False]
tokens_per_second = [250, 1000, 1000, 1000]
intensity = [4, 8]
plain_gflop_s = 32
plain_is_slower = 2

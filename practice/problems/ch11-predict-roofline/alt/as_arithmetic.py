# Every number as the arithmetic that leads to it.
read_ms = [128 * 4 // 16, 128 * 2 // 16, 128 * 2 // 16]
ridge_rows = [32 // 1, 16 // 4, 16 * 4]
fp32_ms = [32, 32, 32, 100 * 1]
imitated_ms = [16, 8 * 4, 32 * 4, 100 * 4]
bf16_ms = [16, 16, 16, 100 * 2 * 128 // 1024]
imitating_pays = [True, True, False, False]
tokens_per_second = [8 * 1000 // 32, 32 * 1000 // 32, 64 * 1000 // 64, 100 * 1000 // 100]
intensity = [2 * 8 // 4, 2 * 8 // 2]
plain_gflop_s = 2 * 8 * 128 // 64
plain_is_slower = 64 // 32

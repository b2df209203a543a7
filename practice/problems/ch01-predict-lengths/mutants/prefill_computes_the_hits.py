# Thinks that the whole prompt is computed, hits included.
# caught by: sample
admitted = (16, 40, 12)
prefill_tokens = 40
after_prefill = (40, 41, 11)
after_decode_5 = (45, 46, 6)
decode_rounds = 11
final_ids = 52
kv_computed = 35

# Thinks that device_len stays with the cache after the prefill.
# caught by: sample
admitted = (16, 40, 12)
prefill_tokens = 24
after_prefill = (40, 40, 12)
after_decode_5 = (45, 46, 6)
decode_rounds = 11
final_ids = 52
kv_computed = 35

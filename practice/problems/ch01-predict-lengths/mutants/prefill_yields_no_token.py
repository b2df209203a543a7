# Forgets that the prefill yields the first token, so one decode too many.
# caught by: sample
admitted = (16, 40, 12)
prefill_tokens = 24
after_prefill = (40, 41, 11)
after_decode_5 = (45, 46, 6)
decode_rounds = 12
final_ids = 52
kv_computed = 35

"""Your answers. A triple is (cached_len, device_len, remain_len)."""

admitted = None
prefill_tokens = None
after_prefill = None
after_decode_5 = None
decode_rounds = None
final_ids = None
kv_computed = None

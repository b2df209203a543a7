# The same answers with the way to them.
"""Each number from the three that are given."""

decode_rounds = 12 - 1
kv_computed = (40 - 16) + 11
final_ids = 40 + 12
prefill_tokens = 40 - 16
admitted = (16, 40, 12)
after_prefill = (40, 40 + 1, 12 - 1)
after_decode_5 = (40 + 5, 41 + 5, 11 - 5)

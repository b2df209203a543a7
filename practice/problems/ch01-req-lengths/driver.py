"""Runs the operations on a Req and reports what can be seen of it after each."""

import torch

from minisgl.core import Req, SamplingParams


def admit(prompt, cached_len, output_len):
    return Req(
        input_ids=prompt,
        table_idx=0,
        cached_len=cached_len,
        output_len=output_len,
        uid=1,
        sampling_params=SamplingParams(max_tokens=output_len),
        cache_handle=None,
    )


def seen(req):
    ids = req.input_ids
    return {
        "cached_len": req.cached_len,
        "device_len": req.device_len,
        "extend_len": req.extend_len,
        "remain_len": req.remain_len,
        "can_decode": req.can_decode,
        "input_ids": ids.tolist() if ids.dtype == torch.int32 else str(ids.dtype),
    }


def run(ops):
    results = []
    for name, *values in ops:
        if name == "admit":
            tokens, *lengths = values
            prompt = torch.tensor(tokens, dtype=torch.int32)
            try:
                req = admit(prompt, *lengths)
            except AssertionError:
                results.append("AssertionError")
                continue
        elif name == "complete":
            req.complete_one()
        elif name == "chunk":
            req.device_len = values[0]
        elif name == "append":
            req.append_host(torch.tensor(values[0], dtype=torch.int32))
        if name == "twin":
            twin = admit(prompt, *lengths)
            results.append({"equal": req == twin, "in_a_set": len({req, twin})})
        elif name == "prompt":
            results.append(prompt.tolist())
        else:
            results.append(seen(req))
    return results

"""Chapter 1: the lengths of one request, from its admission to its last token."""

import _step

import torch

from minisgl.core import Req, SamplingParams

req = Req(
    input_ids=torch.arange(6, dtype=torch.int32),  # a prompt of six tokens …
    table_idx=0,
    cached_len=2,  # … two of which another request has left in the cache
    output_len=3,
    uid=0,
    sampling_params=SamplingParams(max_tokens=3),
    cache_handle=None,
)


def show(stage: str) -> None:
    print(
        f"{stage:<18} cached_len={req.cached_len}  device_len={req.device_len}  "
        f"extend_len={req.extend_len}  remain_len={req.remain_len}  can_decode={req.can_decode}"
    )


show(_step.tr("接纳时（命中 2 个）", "admitted, 2 hits"))
for stage in [
    _step.tr("prefill 之后", "after prefill"),
    _step.tr("decode 1 之后", "after decode 1"),
    _step.tr("decode 2 之后", "after decode 2"),
]:
    req.complete_one()
    req.append_host(torch.tensor([100], dtype=torch.int32))  # as if the sampler had chosen 100
    show(stage)
print(_step.tr("最终 input_ids:", "final input_ids:"), req.input_ids.tolist())

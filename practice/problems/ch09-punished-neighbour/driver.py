"""Samples greedily from batches of requests, and reports in which order the tokens come.

The best token of a row is sampled, then made impossible in the scores, then the next best is
sampled: so a row's whole order shows what the penalties did, whichever way they were computed.
"""

import torch

from minisgl.core import Req, SamplingParams
from minisgl.engine.sample import make_args, sample


def request(uid, table_idx, params, prompt, generated):
    req = Req(
        input_ids=torch.tensor(prompt, dtype=torch.int32),
        table_idx=table_idx,
        cached_len=0,
        output_len=len(generated) + 2,
        uid=uid,
        sampling_params=SamplingParams(**params),
        cache_handle=None,
    )
    for token in generated:
        req.complete_one()
        req.append_host(torch.tensor([token], dtype=torch.int32))
    return req


def pool_of(reqs, vocab_size):
    """What earlier requests have left is still there, behind each text and in rows between."""
    rows, columns = (range(1 + max(numbers)) for numbers in zip(*map(places, reqs), strict=True))
    old = [[(5 * row + column) % vocab_size for column in columns] for row in rows]
    pool = torch.tensor(old, dtype=torch.int32)
    for req in reqs:
        pool[req.table_idx, : req.device_len] = req.input_ids
    return pool


def places(req):
    return req.table_idx, req.device_len + 6


def batch(vocab_size, requests, scores):
    reqs = [request(uid, *one) for uid, one in enumerate(requests)]
    pool, logits = pool_of(reqs, vocab_size), torch.tensor(scores)
    args = make_args(reqs, pool, vocab_size, 0)
    order, kept = [[] for _ in reqs], True
    for _ in range(vocab_size):
        own = logits.clone()
        tokens = sample(own, args).tolist()
        kept = kept and torch.equal(own, logits)
        for row, token in enumerate(tokens):
            order[row].append(token)
            logits[row, token] = -torch.inf
    return {"order": order, "logits_kept": kept, "all_greedy": args.filters is None}


def run(ops):
    return [batch(*values) for values in ops]

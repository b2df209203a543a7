"""Ways to torch's own attention on which its name is never written: bodies of `attention`.

`q`, `k` and `v` have their heads in front, `CALL` is `(q, k, v, is_causal=True, …)`.
"""

import textwrap

CALL = "(q, k, v, is_causal=True, enable_gqa=True).transpose(0, 1)"
HEAD = """\
import string
import torch
import torch.nn.functional as F


def attention(q, k, v):
    q, k, v = (x.transpose(0, 1) for x in (q, k, v))
"""
# Every query head with a key-value head of its own.
REPEATED = "k, v = (x.repeat_interleave(len(q) // len(x), 0) for x in (k, v))"

BODIES = {
    "parts of a name": f"""
        return getattr(F, "scaled_dot" + "_product_attention"){CALL}
    """,
    "the dict of the module": f"""
        return vars(F)["_".join(["scaled", "dot", "product", "attention"])]{CALL}
    """,
    "a pattern": f"""
        match F:
            case object(__dict__=names):
                return names["scaled_dot" + "_product_attention"]{CALL}
    """,
    "a format": f"""
        path = "0.scaled_dot" + "_product_attention"
        return string.Formatter().get_field(path, [F], {{}})[0]{CALL}
    """,
    "the list of what can be overridden": f"""
        known = torch.overrides.get_overridable_functions()[F]
        return [f for f in known if f.__name__.endswith("dot_product_att" + "ention")][0]{CALL}
    """,
    "the operator": f"""
        return getattr(torch.ops.aten, "scaled_dot" + "_product_attention"){CALL}
    """,
    "an operator below it": f"""
        {REPEATED}
        found = getattr(torch.ops.aten, "_scaled_dot" + "_product_attention_math")
        return found(q, k, v, None, 0.0, True)[0].transpose(0, 1)
    """,
    "the kernel of the CPU": f"""
        {REPEATED}
        found = getattr(torch.ops.aten, "_scaled_dot_product_flash" + "_attention_for_cpu")
        return found(q[None], k[None], v[None], 0.0, True)[0][0].transpose(0, 1)
    """,
    "code made here": f"""
        return eval("F.scaled_dot" + "_product_attention"){CALL}
    """,
    "TorchScript": """
        code = "def f(q, k, v):\\n  return torch.nn.functional.scaled_dot_"
        code += "product_attention(q, k, v, None, 0.0, True, enable_gqa=True)\\n"
        return torch.jit.CompilationUnit(code).f(q, k, v).transpose(0, 1)
    """,
    "another function": f"""
        {REPEATED}
        q, k, v = (x.transpose(0, 1) for x in (q, k, v))
        n, heads, dim = q.shape
        one, hidden = torch.eye(dim), torch.ones(n, n, dtype=torch.bool).triu(1)
        found = getattr(F, "multi_head" + "_attention_forward")
        rest = [dim, 1, None, None, None, None, False, 0.0, one, None]
        more = dict(use_separate_proj_weight=True, attn_mask=hidden)
        more |= dict(q_proj_weight=one, k_proj_weight=one, v_proj_weight=one)
        parts = [[x[:, h : h + 1] for x in (q, k, v)] for h in range(heads)]
        return torch.cat([found(*part, *rest, **more)[0] for part in parts], 1)
    """,
}
DETOURS = {
    name: HEAD + textwrap.indent(textwrap.dedent(body), "    ") for name, body in BODIES.items()
}

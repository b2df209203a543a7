# Leaves out the bias.
# caught by: basic
def mkl(weight: torch.Tensor) -> Product:
    ops = torch.ops.mkl
    packed = ops._mkl_reorder_linear_weight(weight, 16)
    return lambda x, bias: ops._mkl_linear(x, packed, weight, None, len(x))

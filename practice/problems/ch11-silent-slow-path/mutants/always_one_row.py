# Tells of a single row, as if each were multiplied alone.
# caught by: sample
def mkl(weight: torch.Tensor) -> Product:
    ops = torch.ops.mkl
    packed = ops._mkl_reorder_linear_weight(weight, 16)
    return lambda x, bias: ops._mkl_linear(x, packed, weight, bias, 1)

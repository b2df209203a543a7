# Rounds the rows up to the number that was packed for.
# caught by: sample
def mkl(weight: torch.Tensor) -> Product:
    ops = torch.ops.mkl
    packed = ops._mkl_reorder_linear_weight(weight, 16)
    return lambda x, bias: ops._mkl_linear(x, packed, weight, bias, max(16, len(x)))

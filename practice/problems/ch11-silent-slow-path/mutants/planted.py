# Tells the operator the number of rows that the weight was packed for.
# caught by: sample
def mkl(weight: torch.Tensor) -> Product:
    """Packed by MKL, which keeps the plain weight beside it."""
    ops, num_rows = torch.ops.mkl, 16
    packed = ops._mkl_reorder_linear_weight(weight, num_rows)
    return lambda x, bias: ops._mkl_linear(x, packed, weight, bias, num_rows)

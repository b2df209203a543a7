# Keeps using the original beside oneDNN's blocks.
# caught by: sample
def onednn(weight: torch.Tensor) -> Product:
    return lambda x, bias: F.linear(x, weight, bias)


def mkl(weight: torch.Tensor) -> Product:
    ops, num_rows = torch.ops.mkl, 16
    packed = ops._mkl_reorder_linear_weight(weight, num_rows)
    return lambda x, bias: ops._mkl_linear(x, packed, weight, bias, num_rows)

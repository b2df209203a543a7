# Adds the bias itself, everywhere.
def transposed(weight: torch.Tensor) -> Product:
    turned = weight.t().contiguous()
    return lambda x, bias: (x @ turned) if bias is None else x @ turned + bias


def onednn(weight: torch.Tensor) -> Product:
    ops = torch.ops.mkldnn
    packed = ops._reorder_linear_weight(weight)

    def product(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        result = ops._linear_pointwise(x, packed, None, "none", [], "")
        return result if bias is None else result + bias

    return product


def mkl(weight: torch.Tensor) -> Product:
    ops = torch.ops.mkl
    packed = ops._mkl_reorder_linear_weight(weight, 256)

    def product(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        result = ops._mkl_linear(x, packed, weight, None, x.size(0))
        return result if bias is None else result + bias

    return product

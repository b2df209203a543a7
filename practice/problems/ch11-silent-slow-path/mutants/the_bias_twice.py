# Adds the bias that the operator has added already.
# caught by: basic
def mkl(weight: torch.Tensor) -> Product:
    ops = torch.ops.mkl
    packed = ops._mkl_reorder_linear_weight(weight, 16)

    def product(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        result = ops._mkl_linear(x, packed, weight, bias, len(x))
        return result if bias is None else result + bias

    return product

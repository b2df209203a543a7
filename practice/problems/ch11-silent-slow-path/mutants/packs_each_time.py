# Packs anew for each product.
# caught by: sample
def mkl(weight: torch.Tensor) -> Product:
    ops = torch.ops.mkl

    def product(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        packed = ops._mkl_reorder_linear_weight(weight, len(x))
        return ops._mkl_linear(x, packed, weight, bias, len(x))

    return product

# Reads the number of rows from the shape, and packs for one row.
def mkl(weight: torch.Tensor) -> Product:
    packed = torch.ops.mkl._mkl_reorder_linear_weight(weight, 1)

    def product(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        num_rows, _ = x.shape
        return torch.ops.mkl._mkl_linear(x, packed, weight, bias, num_rows)

    return product

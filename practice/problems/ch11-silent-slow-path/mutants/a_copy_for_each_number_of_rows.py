# Keeps a packed copy for each number of rows that has come.
# caught by: sample
def mkl(weight: torch.Tensor) -> Product:
    ops, copies = torch.ops.mkl, {}

    def product(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        if len(x) not in copies:
            copies[len(x)] = ops._mkl_reorder_linear_weight(weight, len(x))
        return ops._mkl_linear(x, copies[len(x)], weight, bias, len(x))

    return product

# Multiplies sixteen rows at a time, whatever comes.
# caught by: sample
def mkl(weight: torch.Tensor) -> Product:
    ops = torch.ops.mkl
    packed = ops._mkl_reorder_linear_weight(weight, 16)

    def product(x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        padded = F.pad(x, (0, 0, 0, -len(x) % 16))
        parts = [ops._mkl_linear(part, packed, weight, bias, 16) for part in padded.split(16)]
        return torch.cat(parts)

    return product

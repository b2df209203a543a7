# Transposes without copying: the memory is as it was.
# caught by: edge
def transposed(weight: torch.Tensor) -> Product:
    turned = weight.t()
    return lambda x, bias: x @ turned if bias is None else torch.addmm(bias, x, turned)

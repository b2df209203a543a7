# Avoids the trap by not packing any more.
# caught by: sample
def mkl(weight: torch.Tensor) -> Product:
    return plain(weight)

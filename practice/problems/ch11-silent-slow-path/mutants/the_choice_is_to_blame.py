# Sends only what has just sixteen rows to the second layout.
# caught by: sample
class Choice:
    def apply(self, weight: torch.Tensor) -> Product:
        if not any(self.uses_second):
            return plain(weight)
        first, second = plain(weight), LAYOUTS[self.second](weight)
        return lambda x, bias: (second if len(x) == 16 else first)(x, bias)


def mkl(weight: torch.Tensor) -> Product:
    ops, num_rows = torch.ops.mkl, 16
    packed = ops._mkl_reorder_linear_weight(weight, num_rows)
    return lambda x, bias: ops._mkl_linear(x, packed, weight, bias, num_rows)

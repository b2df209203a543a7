"""Makes a merged layer, loads tensors and multiplies, and reports what can be seen after each."""

import torch
from torch.overrides import TorchFunctionMode

from minisgl.layers.linear import MergedLinear

# What multiplies two matrices, and what may do so for several pairs at once.
PRODUCTS = {"linear", "bilinear", "mm", "addmm", "bmm", "addbmm", "baddbmm", "mv", "addmv"}
PRODUCTS |= {"matmul", "chain_matmul", "multi_dot", "inner", "dot", "vdot", "vecdot"}
PRODUCTS |= {"einsum", "tensordot"}


class Products(TorchFunctionMode):
    """Counts the calls of torch that multiply matrices."""

    count = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "").strip("_").removeprefix("linalg_")
        self.count += name.removeprefix("r") in PRODUCTS
        return function(*args, **(kwargs or {}))


class Run:
    def new(self, in_features, members, bias, dtype):
        self.layer = MergedLinear(in_features, members, bias)
        parts = {
            name: list(shape) if type(shape) is torch.Size else f"no torch.Size: {shape!r}"
            for name, shape in self.layer.parts().items()
        }
        # What materialize does, with zeros; its empty_like from meta takes 0.2 s the first time.
        for name, weight in self.layer.weights().items():
            setattr(self.layer, name, torch.zeros(weight.shape, dtype=getattr(torch, dtype)))
        self.places = self.layer.weight, self.layer.bias
        return parts

    def load(self, part, tensor):
        raised = None
        try:
            self.layer.load(part, tensor)
        except ValueError:
            raised = "ValueError"
        tensor.fill_(-99)  # it was the caller's: nothing of it may be kept
        layer = self.layer
        return {
            "raised": raised,
            "weight": layer.weight.clone(),
            "bias": None if layer.bias is None else layer.bias.clone(),
            "same_place": layer.weight is self.places[0] and layer.bias is self.places[1],
        }

    def forward(self, x):
        before = x.clone()
        with Products() as products:
            pieces = self.layer.forward_split(x)
        storages = {piece.untyped_storage().data_ptr() for piece in pieces}
        one_result = type(pieces) is tuple and len(storages) == 1
        return {
            "pieces": [piece.clone() for piece in pieces],
            "products": products.count,
            "one_result": one_result,
            "x_kept": torch.equal(x, before),
        }


def run(ops):
    state = Run()
    return [getattr(state, name)(*values) for name, *values in ops]

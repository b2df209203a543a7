"""Counts what the host reads back from the device, on a machine that has none.

Each read makes Python wait until the device has computed everything so far. On a CPU it costs
nothing and so goes unnoticed; here the CPU plays the device. An engine that is told to compute on
`DEVICE`, "cpu:0", does what it does on "cpu", but what it puts there can be told apart from what
it keeps on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = "cpu:0"

# Functions that hand values to the host without an operator that would show it; and operators
# whose result on the host, or whose size, depends on values.
_TO_HOST = {
    torch.Tensor.__array__,
    torch.Tensor.__repr__,
    torch.Tensor.cpu,
    torch.Tensor.numpy,
    torch.Tensor.tolist,
    torch.tensor,  # of numbers on the device
}
_VALUE_OPERATORS = {
    "aten::_local_scalar_dense",  # item(), int(), float(), bool(), an index
    "aten::is_nonzero",
    "aten::item",  # as the first, in inference mode
    "aten::_unique2",
    "aten::allclose",
    "aten::equal",
    "aten::masked_select",
    "aten::nonzero",
    "aten::repeat_interleave",
    "aten::unique_consecutive",
    "aten::unique_dim",
}
_INDEXING = {"aten::index", "aten::index_put_", "aten::_index_put_impl_"}


class DeviceReads(TorchFunctionMode):
    """In a `with` block, `count` says how often the host has read from the device so far.

    A tensor is on the device if it was made there, moved there, or computed from one that is.
    The engine must be made inside the block.
    """

    def __init__(self) -> None:
        self.count = 0
        self._operators = _Operators(self)
        self._uses_device = False

    def __enter__(self) -> DeviceReads:
        self._operators.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._operators.__exit__(*error)

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        from_device = any(map(_is_on_device, _tensors([*args, *kwargs.values()])))
        if func == torch.Tensor.device.__get__:
            return torch.device(DEVICE) if from_device else func(*args)
        outer, self._uses_device = self._uses_device, from_device
        try:
            result = func(*args, **kwargs)
        finally:
            self._uses_device = outer
        place = _place_asked_for(func, args, kwargs)
        host_is_written = bool(args) and _is_written(func, args[0], result)
        if from_device and (func in _TO_HOST or place == "host" or host_is_written):
            self.count += 1
            # Where nothing had to move torch returns the tensor itself.
            return result.clone() if result is args[0] and not host_is_written else result
        if place == "device" and func is torch.Tensor.to and not _is_on_device(args[0]):
            result = result.clone()
        return _marked(result) if from_device or place == "device" else result

    def saw(self, operator: str, args: Sequence[Any]) -> None:
        """One operator below a torch function."""
        if self._uses_device and (operator in _VALUE_OPERATORS or _is_by_mask(operator, args)):
            self.count += 1


class _Operators(TorchDispatchMode):
    def __init__(self, reads: DeviceReads) -> None:
        super().__init__()
        self._reads = reads

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self._reads.saw(func._schema.name, args)
        return func(*args, **(kwargs or {}))


def _is_by_mask(operator: str, args: Sequence[Any]) -> bool:
    """Whether a mask says which entries; to write one number there takes no look at it."""
    if operator not in _INDEXING or not any(t.dtype == torch.bool for t in _tensors(args[1])):
        return False
    return operator == "aten::index" or args[2].numel() != 1


def _is_written(func: Callable[..., Any], target: Any, result: Any) -> bool:
    """Whether a tensor on the host was changed in place."""
    if not isinstance(target, torch.Tensor) or _is_on_device(target):
        return False
    in_place = func.__name__.endswith("_") and not func.__name__.endswith("__")
    return func is torch.Tensor.__setitem__ or (in_place and result is target)


def _place_asked_for(
    func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> str | None:
    """Where the result is to be: on the "host", on the "device", or where the arguments are."""
    asked = [kwargs["device"]] if kwargs.get("device") is not None else []
    if func is torch.Tensor.to:
        asked += [arg for arg in args[1:] if isinstance(arg, str | torch.device)]
        asked += [DEVICE if _is_on_device(arg) else "cpu" for arg in _tensors(args[1:])]
    if not asked:
        return None
    return "device" if torch.device(asked[0]) == torch.device(DEVICE) else "host"


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _tensors(value)
    elif isinstance(values, slice):
        yield from _tensors([values.start, values.stop, values.step])


def _is_on_device(tensor: torch.Tensor) -> bool:
    return "on_device" in tensor.__dict__


def _marked(result: Any) -> Any:
    if isinstance(result, Iterator):
        return iter([_marked(one) for one in result])
    for tensor in _tensors(result):
        tensor.__dict__["on_device"] = True
    return result

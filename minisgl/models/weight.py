"""Weights from safetensors files into a model, one tensor at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from tqdm import tqdm

from minisgl.layers.base import Layer
from minisgl.models.config import ModelConfig, read_json
from minisgl.models.decoder import CausalLM

_TIED_HEAD = "lm_head.weight"
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def load_model(
    folder: Path, dtype: torch.dtype, device: torch.device | str, progress: bool = False
) -> tuple[CausalLM, ModelConfig]:
    """Build the model that `folder` describes, and fill it.

    Memory stays at the weights plus one tensor: the model is built without any, allocated once,
    and each tensor goes from the mapped file straight into its final place.

    Raises:
        ValueError: a dtype or device that cannot be used, no such folder, a model that is not
            supported, a damaged file, or tensors that do not fit the model.
    """
    _check_compute(dtype, device)
    if not folder.is_dir():
        raise ValueError(f"a model must be a folder, {folder} is not: check the path")
    config = ModelConfig.from_folder(folder)
    try:
        model = CausalLM(config)
        files = weight_files(folder)
        model.materialize(dtype, torch.device(device))
    except RuntimeError as error:  # of torch's allocator
        raise ValueError(f"the weights must fit in the memory of {device}: {error}") from error
    _load_weights(model, files, progress)
    return model, config


def _check_compute(dtype: torch.dtype, device: torch.device | str) -> None:
    if dtype not in _DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(map(str, _DTYPES))}, got {dtype!r}")
    try:
        torch.zeros(1, device=torch.device(device)).item()
    except Exception as error:  # of another kind for every device that is not there
        raise ValueError(
            f"device must be one that torch can use here, such as 'cpu', got {device!r}: "
            f"{str(error).splitlines()[0]}"
        ) from error


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of the model: `model.safetensors`, or else the shards of the index.

    A folder may hold the same weights more than once, whole, as shards, and as another program's
    `consolidated.safetensors`. One set is read: the one that transformers would choose.

    Raises:
        ValueError: there is no such set, or part of it is missing.
    """
    present = {file.name for file in folder.glob("*.safetensors") if file.is_file()}
    if "model.safetensors" in present:
        return [folder / "model.safetensors"]
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        raise ValueError(
            f"{folder} must contain model.safetensors or {index.name}, it has neither: "
            "fetch the model again"
        )
    weight_map: Any = read_json(index).get("weight_map")
    names = list(weight_map.values()) if isinstance(weight_map, dict) else [weight_map]
    for name in names:
        if not isinstance(name, str) or name not in present:
            raise ValueError(
                f"weight_map in {index} must name files next to it, there is no {name!r:.200}: "
                "fetch the model again"
            )
    return [folder / name for name in sorted(set(names))]


def _load_weights(model: CausalLM, files: list[Path], progress: bool) -> None:
    dtype = model.model.embed_tokens.weight.dtype
    missing = {name: (layer, part) for name, layer, part in model.slots()}
    left_over: dict[str, torch.Tensor] = {}
    bar = tqdm(total=len(missing), desc="load weights", unit="tensor", disable=not progress)
    with bar:
        for name, tensor in _read_tensors(files):
            if name not in missing:
                left_over[name] = tensor
                continue
            _load_tensor(name, tensor, *missing.pop(name), dtype)
            bar.update()
    _drop_redundant(model, left_over)
    if missing or left_over:
        raise ValueError(
            "the checkpoint must have exactly the tensors of the model; "
            f"missing: {_listed(missing)}; left over: {_listed(left_over)}"
        )


def _load_tensor(
    name: str, tensor: torch.Tensor, layer: Layer, part: str, dtype: torch.dtype
) -> None:
    """Copy one tensor of the checkpoint into `layer`, whose weights are of type `dtype`."""
    if tensor.dtype not in _DTYPES:  # quantised codes would be copied as if they were weights
        raise ValueError(
            f"{name} must be float32, bfloat16 or float16, the checkpoint has {tensor.dtype}: "
            "choose an unquantised checkpoint"
        )
    try:
        layer.load(part, tensor)
    except ValueError as error:  # the layer knows its part, not its place in the model
        raise ValueError(f"{name} does not fit the model: {error}") from None
    largest = torch.finfo(dtype).max
    low, high = (bound.item() for bound in tensor.aminmax())  # both are NaN if any number is
    if not -largest <= low <= high <= largest:
        raise ValueError(
            f"{name} must be finite in {dtype}, the checkpoint has {low:g} to {high:g}: "
            "load it in another dtype or choose another checkpoint"
        )


def _read_tensors(files: list[Path]) -> Iterator[tuple[str, torch.Tensor]]:
    """Name and tensor, mapped from the file: it takes no memory until it is read."""
    found: dict[str, Path] = {}
    for file in files:
        try:
            with safe_open(file, framework="pt") as content:
                for name in content.keys():  # noqa: SIM118 (not a dict)
                    first = found.setdefault(name, file)
                    if first != file:
                        raise ValueError(
                            f"{name} must be in one file only, it is in {first} and in "
                            f"{file.name}: fetch the model again"
                        )
                    yield name, content.get_tensor(name)
        except SafetensorError as error:
            raise ValueError(f"{file} is damaged, fetch it again: {error}") from error


def _drop_redundant(model: CausalLM, left_over: dict[str, torch.Tensor]) -> None:
    """Forget what follows from the rest: stored RoPE frequencies, and a copy of a tied head."""
    for name in [name for name in left_over if name.endswith("rotary_emb.inv_freq")]:
        del left_over[name]
    embedding = model.model.embed_tokens.weight
    if model.lm_head.is_tied and _TIED_HEAD in left_over:
        head = left_over.pop(_TIED_HEAD).to(embedding.device, embedding.dtype)
        if not torch.equal(head, embedding):
            raise ValueError(
                f"{_TIED_HEAD} must equal the embedding, as tie_word_embeddings in config.json "
                "is true, but it differs: set tie_word_embeddings to false"
            )


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(list(names)[:8]) or "none"
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"

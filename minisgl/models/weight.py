"""Weights from safetensors files into a model, one tensor at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from tqdm import tqdm

from minisgl.models.config import ModelConfig, read_json
from minisgl.models.decoder import CausalLM

_TIED_HEAD = "lm_head.weight"
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def load_model(
    folder: Path, dtype: torch.dtype, device: torch.device, progress: bool = False
) -> tuple[CausalLM, ModelConfig]:
    """Build the model that `folder` describes, and fill it.

    Memory stays at the weights plus one tensor: the model is built without any, allocated once,
    and each tensor goes from the mapped file straight into its final place.

    Raises:
        ValueError: no such model, a damaged file, or tensors that do not match the model.
    """
    if not folder.is_dir():
        raise ValueError(f"a model must be a folder, {folder} is none: check the path")
    config = ModelConfig.from_folder(folder)
    model = CausalLM(config)
    files = weight_files(folder)
    model.materialize(dtype, device)
    _load_weights(model, files, progress)
    return model, config


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files that hold the model: those of the index, or the only one.

    A folder may hold the same weights twice, as shards and as `consolidated.safetensors` of
    another program; only the set that the index or the usual name points to is read.
    """
    index = folder / "model.safetensors.index.json"
    single = folder / "model.safetensors"
    if index.exists():
        weight_map = read_json(index).get("weight_map")
        if not isinstance(weight_map, dict):
            raise ValueError(f"{index} must map names to files in weight_map, got {weight_map!r}")
        for name in weight_map.values():
            if not isinstance(name, str) or "/" in name or "\\" in name:
                raise ValueError(f"{index} must name files of its own folder, it has {name!r}")
        files = [folder / name for name in sorted(set(weight_map.values()))]
    else:
        files = [single]
    for file in files:
        if not file.is_file():
            raise ValueError(f"the weights must be in {file.name}, {folder} has no such file")
    return files


def _load_weights(model: CausalLM, files: list[Path], progress: bool) -> None:
    missing = {name: (layer, part) for name, layer, part in model.slots()}
    left_over: dict[str, torch.Tensor] = {}
    bar = tqdm(total=len(missing), desc="load weights", unit="tensor", disable=not progress)
    with bar:
        for name, tensor in _read_tensors(files):
            if name not in missing:
                left_over[name] = tensor
                continue
            if tensor.dtype not in _DTYPES:  # copied as numbers, codes would be nonsense weights
                dtype = str(tensor.dtype).removeprefix("torch.")
                raise ValueError(
                    f"{name} must be float32, bfloat16 or float16, the checkpoint has {dtype}: "
                    "choose an unquantised checkpoint"
                )
            layer, part = missing.pop(name)
            try:
                layer.load(part, tensor)
            except ValueError as error:  # the layer knows its part, not its place in the model
                raise ValueError(f"{name} does not fit the model: {error}") from None
            bar.update()
    _drop_redundant(model, left_over)
    if missing or left_over:
        raise ValueError(
            f"the checkpoint must hold the model's tensors and no others; "
            f"missing: {_listed(missing)}; left over: {_listed(left_over)}"
        )


def _read_tensors(files: list[Path]) -> Iterator[tuple[str, torch.Tensor]]:
    """Name and tensor, mapped from the file: it takes no memory until it is read."""
    for file in files:
        try:
            with safe_open(file, framework="pt") as content:
                for name in content.keys():  # noqa: SIM118 (not a dict)
                    yield name, content.get_tensor(name)
        except SafetensorError as error:
            raise ValueError(f"{file} is damaged, fetch it again: {error}") from error


def _drop_redundant(model: CausalLM, left_over: dict[str, torch.Tensor]) -> None:
    """Forget what repeats something known: stored RoPE frequencies, and a copy of a tied head."""
    for name in [name for name in left_over if name.endswith("rotary_emb.inv_freq")]:
        del left_over[name]
    embedding = model.model.embed_tokens.weight
    if model.lm_head.is_tied and _TIED_HEAD in left_over:
        head = left_over.pop(_TIED_HEAD).to(embedding.device, embedding.dtype)
        if not torch.equal(head, embedding):
            raise ValueError(
                f"the config ties the head to the embedding, but {_TIED_HEAD} differs from it: "
                "set tie_word_embeddings to false in config.json"
            )


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(list(names)[:8]) or "none"
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"

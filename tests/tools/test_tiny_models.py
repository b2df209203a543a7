"""Most tests stand on the tiny models: transformers must load them, their logits must not tie."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from tiny_models import ARCHITECTURES, make_tiny_model

TEXT = "Hi 123 café cafe\u0301 中文,请求😀\n\n  def f(x):\n\tok <|im_start|>user\x00\x7f"


def load(folder: Path) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def last_logits(model: PreTrainedModel, ids: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return model(ids).logits[0, -1]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small only wait for a second thread, and far longer on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(params=ARCHITECTURES)
def arch(request: pytest.FixtureRequest) -> str:
    return request.param


def test_every_tensor_is_used_and_none_is_missing(arch: str, tmp_path: Path) -> None:
    folder = make_tiny_model(arch, tmp_path)
    _, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not any(info.values()), info
    for name, tensor in load_file(folder / "model.safetensors").items():
        assert tensor.dtype == torch.float32
        assert tensor.std() > 0, f"{name} is constant: a wrong use of it would not show"


def test_the_same_arguments_give_the_same_bytes_in_milliseconds(arch: str, tmp_path: Path) -> None:
    first = make_tiny_model(arch, tmp_path / "a")
    start = time.process_time()  # of this process only: the machine may be busy
    second = make_tiny_model(arch, tmp_path / "b")
    assert time.process_time() - start < 0.5
    names = sorted(path.name for path in first.iterdir())
    assert names == sorted(path.name for path in second.iterdir())
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_the_tokenizer_file_and_transformers_agree(arch: str, tmp_path: Path) -> None:
    folder = make_tiny_model(arch, tmp_path)
    ids = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(TEXT).ids
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer(TEXT)["input_ids"] == ids
    assert tokenizer.eos_token_id == 2
    assert 1 in ids  # <|im_start|> is one token
    assert len(ids) < len(TEXT.encode())  # merges are applied
    chat = tokenizer.apply_chat_template(
        [{"role": "user", "content": "hi"}], tokenize=False, add_generation_prompt=True
    )
    assert chat == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


def test_greedy_tokens_never_tie_and_do_not_loop(arch: str, tmp_path: Path) -> None:
    model = load(make_tiny_model(arch, tmp_path))
    model.generation_config.eos_token_id = None
    generator = torch.Generator().manual_seed(7)
    smallest = float("inf")
    for prompt in range(8):
        ids = torch.randint(3, model.config.vocab_size, (1, 5 + 4 * prompt), generator=generator)
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=64,
            output_logits=True,
            return_dict_in_generate=True,
        )
        best = torch.cat(out.logits).topk(2).values  # [64, 2]
        smallest = min(smallest, float((best[:, 0] - best[:, 1]).min()))
        assert len(best) == 64
        assert len(set(out.sequences[0, -16:].tolist())) >= 6, "greedy output is a short loop"
    assert smallest > 5e-3


def test_rounding_does_not_grow_into_another_answer(arch: str, tmp_path: Path) -> None:
    model = load(make_tiny_model(arch, tmp_path))
    ids = torch.randint(
        3, model.config.vocab_size, (1, 96), generator=torch.Generator().manual_seed(3)
    )
    exact = last_logits(model.double(), ids)
    assert (last_logits(model.float(), ids) - exact).abs().max() < 1e-3


def test_attention_matters(arch: str, tmp_path: Path) -> None:
    model = load(make_tiny_model(arch, tmp_path))
    ids = torch.randint(
        3, model.config.vocab_size, (1, 48), generator=torch.Generator().manual_seed(3)
    )
    before = last_logits(model, ids)
    swapped = ids.clone()
    swapped[0, [20, 30]] = ids[0, [30, 20]]
    assert (last_logits(model, swapped) - before).abs().max() > 0.1


def test_llama3_scaling_matters_at_test_lengths(tmp_path: Path) -> None:
    scaled = load(make_tiny_model("llama3", tmp_path / "scaled"))
    plain = load(make_tiny_model("llama3", tmp_path / "plain", rope_scaling=None))
    ids = torch.randint(
        3, scaled.config.vocab_size, (1, 32), generator=torch.Generator().manual_seed(3)
    )
    assert (last_logits(scaled, ids) - last_logits(plain, ids)).abs().max() > 0.1


def test_overrides_reach_config_and_tensors(tmp_path: Path) -> None:
    folder = make_tiny_model("qwen3", tmp_path, num_hidden_layers=2, tie_word_embeddings=True)
    assert json.loads((folder / "config.json").read_text())["num_hidden_layers"] == 2
    names = set(load_file(folder / "model.safetensors"))
    assert "model.layers.1.self_attn.q_norm.weight" in names
    assert "model.layers.2.self_attn.q_norm.weight" not in names
    assert "lm_head.weight" not in names


def test_an_unknown_architecture_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"unknown architecture 'gpt5'.*qwen3"):
        make_tiny_model("gpt5", tmp_path)

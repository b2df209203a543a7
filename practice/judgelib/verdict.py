"""What the judge says of a submission: a code, the smallest input that shows it, both languages."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from practice.judgelib.text import NOTHING, Text, visible
from tools.lang import tr

Code = Literal["AC", "WA", "RE", "TLE", "MLE", "OLE", "CE", "BAN", "SV", "IE", "SK"]

CODES: dict[str, Text] = {
    "AC": Text("通过", "accepted"),
    "WA": Text("答案错误", "wrong answer"),
    "RE": Text("运行出错", "runtime error"),
    "TLE": Text("超时", "time limit exceeded"),
    "MLE": Text("超出内存", "memory limit exceeded"),
    "OLE": Text("输出过多", "output limit exceeded"),
    "CE": Text("无法编译", "cannot be compiled"),
    "BAN": Text("用了不允许的名字", "uses a name that is not allowed"),
    "SV": Text("越出沙箱", "sandbox violation"),
    "IE": Text("判题系统自身出错，不计入尝试", "the judge's own fault, not counted"),
    "SK": Text("这里缺少需要的东西，没有判题", "not judged: something it needs is not here"),
}
# Codes that say nothing about the reader's work.
NOT_COUNTED = ("IE", "SK")


@dataclass(frozen=True)
class Verdict:
    """One outcome. `case` is the failing input as text, `label` what is special about it.

    `error` is the largest error of a float over all cases, `cases` how many were answered right.
    """

    code: Code
    message: Text = NOTHING
    group: str = ""
    label: Text = NOTHING
    case: str = ""
    expected: str = ""
    got: str = ""
    first_wrong_index: str = ""
    traceback: str = ""
    stdout: str = ""
    line: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_mb: float = 0.0
    cases: int = 0
    error: float = 0.0
    seed: int = 0

    @property
    def accepted(self) -> bool:
        """Whether every case came back and compared equal."""
        return self.code == "AC"

    def legible(self) -> Verdict:
        """The same verdict with nothing in its texts that a terminal would obey (`visible`)."""
        texts = {one.name: getattr(self, one.name) for one in fields(self)}
        changed = {name: visible(text) for name, text in texts.items() if type(text) is str}
        return replace(self, message=Text(*map(visible, self.message)), **changed)  # type: ignore[arg-type]

    def as_json(self) -> dict[str, Any]:
        """The whole verdict as plain values, texts in both languages."""
        found = asdict(self)
        for key in ("message", "label"):
            found[key] = getattr(self, key)._asdict()
        found["meaning"] = CODES[self.code]._asdict()
        found["error"] = self.error if self.error < float("inf") else None
        return found


def render(verdict: Verdict, name: str) -> str:
    """The verdict for a terminal, in the reader's language."""
    sign = "✓" if verdict.accepted else "-" if verdict.code in NOT_COUNTED else "✗"
    lines = [f"{sign} {verdict.code} {CODES[verdict.code]}  {name}"]
    if verdict.accepted:
        seconds, peak = f"{verdict.wall_s:.2f} s", f"{verdict.peak_mb:.0f} MB"
        lines[0] += tr(
            f"  {verdict.cases} 组输入，{seconds}，{peak}",
            f"  {verdict.cases} cases, {seconds}, {peak}",
        )
    if verdict.group:
        lines.append(_item(tr("分组", "group"), f"{verdict.group}  {verdict.label}".rstrip()))
    rows = [
        (tr("原因", "reason"), str(verdict.message)),
        (tr("输入", "input"), verdict.case),
        (tr("第一处不同", "first wrong"), verdict.first_wrong_index),
        (tr("应为", "expected"), verdict.expected),
        (tr("得到", "got"), verdict.got),
        (tr("出错位置", "traceback"), verdict.traceback),
        (tr("你的输出", "your output"), "" if verdict.accepted else verdict.stdout),
    ]
    lines += [_item(label, text) for label, text in rows if text]
    return "\n".join(lines)


def _item(label: str, text: str) -> str:
    """A label with its text; further lines of the text are indented below it."""
    first, *more = text.rstrip("\n").split("\n")
    if more:
        return "\n".join([f"  {label}:", *(f"    {line}" for line in [first, *more])])
    return f"  {label}: {first}"

"""Directives that state facts of a chapter and of the whole road: cards and tables."""

from __future__ import annotations

import ast
from html import escape

from practice.judgelib.catalogue import Problem
from tools.book.context import Context, arguments
from tools.book.errors import BookError
from tools.book.reader import changed
from tools.book.settings import Stretch
from tools.book.values import caption, column_entry, need_column, record, rows, shown
from tools.steplib import Step, marks
from tools.steplib.difference import BUDGET_LINES, budget

LEVELS = {1: ("★☆☆", "★☆☆"), 2: ("★★☆", "★★☆"), 3: ("★★★", "★★★")}
DIFFICULTY = {"easy": ("简单", "easy"), "medium": ("中等", "medium"), "hard": ("困难", "hard")}


def row(*cells: str) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(head: list[str], body: list[list[str]], numbers: set[int] | None = None) -> str:
    """A Markdown table; `numbers` are the columns that are aligned to the right."""
    rule = ["---:" if i in (numbers or set()) else "---" for i in range(len(head))]
    return "\n".join([row(*head), "| " + " | ".join(rule) + " |", *(row(*one) for one in body)])


def facts(context: Context, text: str) -> str:
    """`@@facts@@`: time, difficulty, files, budget, main and tests of the page's chapter."""
    arguments(text, set(), 0)
    step, say = context.need_step(), context.say
    page = context.sources.settings.pages.get(context.page.name)
    if page is None:
        raise BookError(
            f"docs/book.toml 里没有 [pages.{context.page.name}]：写上 minutes 和 level",
            f"docs/book.toml has no [pages.{context.page.name}]: give it minutes and level",
        )
    kinds = list(marks(context.sources.book, step.number).values())
    counts = [kinds.count(kind) for kind in ("new", "changed", "removed")]
    lines = budget(context.sources.book, step.number)
    body = [
        [say("时间", "Time"), say(f"约 {page.minutes} 分钟", f"about {page.minutes} minutes")],
        [say("难度", "Difficulty"), context.say(*LEVELS[page.level])],
        [
            say("文件", "Files"),
            say(
                "新增 {} · 修改 {} · 删除 {} · 提前引入 0".format(*counts),
                "{} new · {} changed · {} removed · 0 brought in early".format(*counts),
            ),
        ],
        [
            say("代码", "Code"),
            say(
                f"{lines} 行新增或修改（预算 {BUDGET_LINES} 行）",
                f"{lines} lines new or changed (budget: {BUDGET_LINES})",
            ),
        ],
        [say("主程序", "Main"), _source(context, step.main)],
        [say("测试", "Tests"), "<br>".join(_source(context, path) for path in step.tests)],
    ]
    notebook = f"notebooks/{step.main.rpartition('/')[2].removesuffix('.py')}.ipynb"
    body.append([say("笔记本", "Notebook"), _source(context, notebook)])
    if not step.writes:
        body[3][1] = say(
            "一个独立的脚本，不进软件包", "one script that stands alone, nothing in the package"
        )
    return _card_of(body)


def _card_of(body: list[list[str]]) -> str:
    cells = "\n".join(f'<tr><th scope="row">{one}</th><td>{two}</td></tr>' for one, two in body)
    return f'<table class="facts">\n{cells}\n</table>'


def _source(context: Context, path: str) -> str:
    return f'<a href="{context.sources.blob(path)}"><code>{path}</code></a>'


def _boxed(kind: str, markdown: str) -> str:
    """A table in a box of its kind, for the style sheet."""
    return f'<div class="{kind}" markdown="1">\n\n{markdown}\n\n</div>'


def problems(context: Context, text: str) -> str:
    """`@@problems@@`: the cards of the chapter's problems; a script brings them to life."""
    arguments(text, set(), 0)
    step = context.need_step()
    catalogue = context.sources.problems
    if catalogue.broken:
        raise BookError(*[f"practice/problems: {catalogue.broken[0]}"] * 2)
    # The number that the list of the judge shows.
    numbered = enumerate(catalogue.problems, 1)
    mine = [(number, one) for number, one in numbered if one.chapter == step.number]
    if not mine:
        raise BookError(
            f"{step.label} 没有题目：去掉 @@problems@@",
            f"{step.label} has no problem: drop @@problems@@",
        )
    intro = context.say(f"本章有 {len(mine)} 道题。", f"This chapter has {len(mine)} problems.")
    if len(mine) == 1:
        intro = context.say("本章有 1 道题。", "This chapter has one problem.")
    cards = "\n".join(_card(context, number, one) for number, one in mine)
    return f'{intro}\n\n<ol class="problems" data-problems>\n{cards}\n</ol>'


def _card(context: Context, number: int, problem: Problem) -> str:
    title = problem.title.zh if context.language == "zh" else problem.title.en
    level = context.say(*DIFFICULTY[problem.difficulty])
    return (
        f'<li class="problem" data-problem="{escape(problem.id)}">'
        f'<span class="problem-title">{number}. {escape(title)}</span> '
        f'<span class="problem-level problem-{problem.difficulty}">{level}</span> '
        '<span class="problem-state" hidden></span>'
        f"<code>python3 practice/judge.py show {escape(problem.id)}</code></li>"
    )


def diff(context: Context, text: str) -> str:
    """`@@diff@@`: a link to the page of the whole change, and what only stands there, and why."""
    arguments(text, set(), 0)
    step = context.need_step()
    depth = "../" if context.language == "zh" else "../../"
    link = f'<a href="{depth}changes/{step.page}.html">'
    lines = [
        context.say(
            f"{link}本章的全部改动</a>（一页统一 diff）。",
            f"{link}The whole change of this chapter</a>, as one diff.",
        )
    ]
    page = context.sources.settings.pages.get(context.page.name)
    for one in page.not_shown if page else ():
        context.reader.show(one.path, one.symbol)
        why = one.why[context.language]
        what = f"`{one.path}`" + (f" `{one.symbol}`" if one.symbol else "")
        lines.append(context.say(f"- 只在那里：{what}。{why}", f"- Only there: {what}. {why}"))
    return "\n\n".join([lines[0], "\n".join(lines[1:])]).rstrip()


def bench_table(context: Context, text: str) -> str:
    """`@@table KEY [columns=a,b] [where=col=value]@@`, with machine, versions and date."""
    words, options = arguments(text, {"columns", "where"}, 1)
    document = record(context.sources, words[0])
    columns = [one.strip() for one in options["columns"].split(",")] if "columns" in options else []
    columns = columns or list(document["rows"][0])
    for column in columns:
        need_column(document, column)
    found = rows(document, options.get("where", ""))
    entries = [column_entry(context.sources, words[0], column) for column in columns]
    head = [
        entry[0][context.language] if entry else column
        for entry, column in zip(entries, columns, strict=True)
    ]
    forms = [entry[1] if entry else "" for entry in entries]
    body = [
        [
            shown(one[column], form if isinstance(one[column], (int, float)) else "")
            for column, form in zip(columns, forms, strict=True)
        ]
        for one in found
    ]
    numbers = {i for i, column in enumerate(columns) if not isinstance(found[0][column], str)}
    made = f"{caption(context.language, document)}\n{{ .caption }}"
    return _boxed("bench", f"{table(head, body, numbers)}\n\n{made}")


def roadmap(context: Context, text: str) -> str:
    """`@@roadmap@@`: every chapter with its limit, ability and proof; those to come are marked."""
    arguments(text, set(), 0)
    language, settings = context.language, context.sources.settings
    written = {step.number: step for step in context.sources.book}
    road = {one.chapter: one for one in settings.road}
    for number in written:
        if number not in road:
            raise BookError(
                f"docs/book.toml 没有第 {number} 章的 [[road]]",
                f"docs/book.toml has no [[road]] of chapter {number}",
            )
    head = [
        context.say("章", "Chapter"),
        context.say("上一步的局限", "What limits the step before"),
        context.say("新能力", "New ability"),
        context.say("主要证据", "Main proof"),
    ]
    body: list[list[str]] = []
    part: int | None = None
    for number in sorted(road):
        stretch, step = road[number], written.get(number)
        here = step.part if step else stretch.part
        if here != part and here in settings.parts:
            body.append([f"**{settings.parts[here][language]}**", "", "", ""])
        part = here
        texts = (stretch.limit, stretch.ability, stretch.proof)
        body.append([_stop(context, stretch, step), *(one[language] for one in texts)])
    return _boxed("road", table(head, body))


def _stop(context: Context, stretch: Stretch, step: Step | None) -> str:
    number = f"{stretch.chapter:02}"
    if step:
        return f"[{number} {step.title[context.language]}]({step.page}.md)"
    if stretch.title is None or stretch.part is None:
        raise BookError(
            f"docs/book.toml 的 [[road]] 第 {number} 章缺少 title 或 part",
            f"chapter {number} in docs/book.toml [[road]] lacks title or part",
        )
    return f"{number} {stretch.title[context.language]}{context.say('（待写）', ' (to come)')}"


def status(context: Context, text: str) -> str:
    """`@@status@@`: what the checks prove of each chapter, counted from what they read."""
    arguments(text, set(), 0)
    sources, say = context.sources, context.say
    head = [
        say("章", "Chapter"),
        say("代码行 / 预算", "Lines / budget"),
        say("测试", "Tests"),
        say("输出行", "Output lines"),
        say("测量", "Measured"),
        say("题目", "Problems"),
    ]
    body = []
    for step in sources.book:
        output = (step.folder / f"expected.{context.language}.txt").read_text("utf-8")
        benches = sorted(sources.root.glob(f"bench/{step.label}_*.json"))
        count = sum(one.chapter == step.number for one in sources.problems.problems)
        body.append(
            [
                f"[{step.number:02} {step.title[context.language]}]({step.page}.md)",
                f"{budget(sources.book, step.number)} / {BUDGET_LINES}",
                str(sum(count_tests(sources.read(path)) for path in step.tests)),
                str(len(output.splitlines())),
                ", ".join(f"[{one.stem}]({sources.blob(f'bench/{one.name}')})" for one in benches)
                or "–",
                str(count) if count else "–",
            ]
        )
    return _boxed("status", table(head, body, {1, 2, 3, 5}))


def count_tests(source: str) -> int:
    """How many test functions a file has, counting a parametrised one once."""
    return sum(
        isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        for node in ast.walk(ast.parse(source))
    )


def lines_of_chapter(context: Context) -> int:
    """How many lines the page's chapter writes or changes, docstrings and comments included."""
    return changed(context.reader.before, context.reader.after)

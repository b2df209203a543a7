"""Directives that state facts of a chapter: its card, its problems, its whole change."""

from __future__ import annotations

from html import escape

from practice.judgelib.catalogue import Problem
from tools.book.context import Context, arguments
from tools.book.errors import BookError
from tools.book.settings import NotShown
from tools.steplib import marks

DIFFICULTY = {"easy": ("简单", "easy"), "medium": ("中等", "medium"), "hard": ("困难", "hard")}


def facts(context: Context, text: str) -> str:
    """`@@facts@@`: time, difficulty, files, main and tests of the page's chapter."""
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
    files = len(kinds) - counts[2]
    body = [
        [say("时间", "Time"), say(f"约 {page.minutes} 分钟", f"about {page.minutes} minutes")],
        [say("难度", "Difficulty"), "★" * page.level + "☆" * (3 - page.level)],
        [
            say("文件", "Files"),
            say(
                "共 {} · 新增 {} · 修改 {} · 删除 {} · 提前引入 0".format(files, *counts),
                "{} · {} new · {} changed · {} removed · 0 brought in early".format(files, *counts),
            ),
        ],
        [say("主程序", "Main"), _source(context, step.main)],
        [say("测试", "Tests"), "<br>".join(_source(context, path) for path in step.tests)],
    ]
    notebook = f"notebooks/{step.main.rpartition('/')[2].removesuffix('.py')}.ipynb"
    body.append([say("笔记本", "Notebook"), _source(context, notebook)])
    return _card_of(body)


def _card_of(body: list[list[str]]) -> str:
    cells = "\n".join(f'<tr><th scope="row">{one}</th><td>{two}</td></tr>' for one, two in body)
    return f'<table class="facts">\n{cells}\n</table>'


def _source(context: Context, path: str) -> str:
    return f'<a href="{context.sources.blob(path)}"><code>{path}</code></a>'


def workspace(context: Context) -> str:
    """What opens the steps of a chapter: where the reader writes, runs and checks his own code."""
    step, say = context.need_step(), context.say
    said = {
        "start": say(f"建工作区 workspace/{step.name}", f"makes workspace/{step.name}"),
        "run": say("用你的代码运行主程序", "runs the main on your code"),
        "verify": say("用你的代码跑测试", "runs the tests on your code"),
    }
    typed = {f"python3 tools/steps.py {name} {step.number}": what for name, what in said.items()}
    commands = "\n".join(f"{command:<35}# {what}" for command, what in typed.items())
    text = say(
        f"本页的小段程序也能用你的代码跑：`cd workspace/{step.name}`，存成这里的文件，再运行 "
        "`../../.venv/bin/python try.py`；不带文件名，就直接粘贴。存在别处的，跑的是书里写完的"
        "代码。要你写的都折叠着：先自己写，再展开对照。",
        f"This page's snippets run on your code too: `cd workspace/{step.name}`, save one there, "
        "and `../../.venv/bin/python try.py` (without a name, paste it). A file saved elsewhere "
        "runs on the book's finished code. What is yours to write is folded: write first, then "
        "compare.",
    )
    switch = say("展开全部代码", "Show all code")
    return (
        f'<div class="workspace" markdown="1">\n\n```sh\n{commands}\n```\n\n{text}\n\n'
        f'<label data-unfold hidden><input type="checkbox"> {switch}</label>\n</div>\n'
    )


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
    for one in context.sources.settings.hidden(context.page.name):
        _listed(context, one)
        why = one.why[context.language]
        what = f"`{one.path}`" + (f" `{one.symbol}`" if one.symbol else "")
        lines.append(context.say(f"- 只在那里：{what}。{why}", f"- Only there: {what}. {why}"))
    return "\n\n".join([lines[0], "\n".join(lines[1:])]).rstrip()


def _listed(context: Context, one: NotShown) -> None:
    """Give the reader the lines that docs/book.toml lists, as the page of the change does."""
    try:
        context.reader.show(one.path, one.symbol)
    except BookError as error:
        where = f"docs/book.toml [pages.{context.page.name}] not_shown"
        raise BookError(*[f"{where}: {text}" for text in error.args]) from None

"""The generator of the book: what pages state about the code is computed from the code.

A page is Markdown with directives on lines of their own (`@@code minisgl/core.py:Req@@`). `expand`
turns it into plain Markdown, `checks` proves what must hold over all pages, `replay` types what a
page shows and compares. The command is `python3 -m tools.book`; `hook.py` is all that MkDocs knows
of it. Nothing here imports torch.
"""

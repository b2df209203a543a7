"""The figures of the book, drawn from recorded runs, benchmarks and the code itself.

One visual language: a request has a colour and a letter, a page is a square, a token is a cell.
`tools/figures.py` is the command and the interface. A chapter that brings figures adds

- a module such as `ch08.py`: a function under `@figure("NAME")` per figure, named in `chapters.py`,
- its words to `labels.toml`, in Chinese and in English,
- if a run is to be shown, a recorder under `runs/`, named in `traces.py`; then
  `python3 tools/figures.py record NAME`, once, and `check`.

Only recording runs a step; drawing imports no torch.
"""

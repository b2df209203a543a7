"""Figures: all of the book's are there, readable in both languages, drawn from fresh data."""

import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from tools import figures
from tools.figlib import data, drawing, labels, readme, traces
from tools.figlib.canvas import Canvas
from tools.figures import FigureError

ROOT = Path(__file__).resolve().parents[2]
PROMISED = {
    "staircase",
    "demo",
    "overview_tokens",
    "layers",
    "processes",
    "paths",
    "states",
    "steps_of_a_request",
    "ch00_loop",
    "ch00_where_time",
    "ch01_lengths",
    "ch01_batch",
    "ch02_attention",
    "ch02_rope",
    "ch02_rope_distance",
    "ch03_names",
    "ch03_layers",
    "ch04_pipeline",
    "ch04_top_p",
    "ch05_recompute",
    "ch05_cone",
    "ch05_rows",
    "ch06_fragmentation",
    "ch06_allocation",
    "ch06_page_table",
    "live_pages",
    "ch07_ragged",
    "ch07_mixed",
    "ch07_throughput",
    "ch08_tree",
    "ch08_split",
    "ch08_evict",
    "ch08_locks",
    "ch08_cache_req",
    "live_radix",
    "ch09_thresholds",
    "ch09_randomness",
    "live_sampler",
    "ch10_states",
    "ch10_timelines",
    "live_schedule",
    "ch10_sharing",
    "ch11_layouts",
    "ch11_layers",
    "ch11_roofline",
    "ch12_budget",
    "ch12_steps",
    "live_chunks",
    "ch12_gaps",
    "ch12_rates",
    "ch13_pool",
    "live_retraction",
    "ch14_lanes",
    "live_flight",
}
# The column of a phone and, for pictures that a phone is not shown, of a screen; and the smallest
# text that can be read there.
PHONE, SCREEN, SMALLEST = 358, 980, 11
SVG = "{http://www.w3.org/2000/svg}"
BOTH = pytest.mark.parametrize("language", labels.LANGUAGES)
EVERY = pytest.mark.parametrize("name", figures.names())


@pytest.fixture
def benches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the records, from which figures are drawn instead."""
    folder = tmp_path / "bench"
    shutil.copytree(data.BENCH, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(data, "BENCH", folder)
    return folder


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the traces, from which figures are drawn instead."""
    folder = tmp_path / "traces"
    shutil.copytree(traces.TRACES, folder)
    monkeypatch.setattr(traces, "TRACES", folder)
    return folder


def canvases(name: str, language: str) -> Iterator[tuple[int, Canvas]]:
    drawn = drawing.MAKERS[name](labels.words(name, language))
    yield from enumerate((frame.canvas for frame in drawn.frames), 1)


# --- what is drawn ------------------------------------------------------------------------------


def test_every_promised_figure_is_there() -> None:
    assert set(figures.names()) == PROMISED


@BOTH
@EVERY
def test_a_figure_is_well_formed_and_speaks_for_itself(name: str, language: str) -> None:
    html = figures.render(name, language, alt="What can be seen < here")
    assert "\n" not in html  # a block of HTML in Markdown ends at a blank line
    root = ET.fromstring(html)
    assert root.get("aria-label") == "What can be seen < here"
    pictures = [svg for svg in root.iter(f"{SVG}svg") if svg.get("role") == "img"]
    assert pictures
    for svg in pictures:
        title, desc = svg.find(f"{SVG}title"), svg.find(f"{SVG}desc")
        assert title is not None and title.text and desc is not None and desc.text
        assert svg.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"


@BOTH
def test_figures_of_one_page_share_no_id_and_bring_nothing_from_outside(language: str) -> None:
    page = "".join(figures.render(name, language) for name in figures.names())
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    page = page.replace('xmlns="http://www.w3.org/2000/svg"', "")
    for forbidden in ("http:", "https:", "<script", " style=", "url(", " onclick", "nan", "None"):
        assert forbidden not in page, forbidden


@BOTH
@EVERY
def test_no_text_leaves_its_picture_or_is_too_small(name: str, language: str) -> None:
    for number, canvas in canvases(name, language):
        width = canvas.width + 2 * drawing.EDGE
        for text in canvas.texts:
            place = f"frame {number}: {text.content!r}"
            assert text.left >= -drawing.EDGE, place
            assert text.right <= canvas.width + drawing.EDGE, place
            assert text.top >= 0 and text.bottom <= canvas.height + 2, place
            column = SCREEN if canvas.width > 900 else PHONE
            assert text.size * column / width >= SMALLEST, place


@BOTH
@EVERY
def test_no_text_lies_on_another(name: str, language: str) -> None:
    for number, canvas in canvases(name, language):
        for a, b in combinations(canvas.texts, 2):
            across = min(a.right, b.right) - max(a.left, b.left)
            down = min(a.bottom, b.bottom) - max(a.top, b.top)
            # Widths are estimated on the safe side, so neighbours may seem to touch.
            close = 0.12 * min(a.right - a.left, b.right - b.left)
            where = f"frame {number}: {a.content!r} and {b.content!r}"
            assert across <= max(2, close) or down <= 2, where


def test_every_class_of_a_shape_is_in_the_style_sheet() -> None:
    css = (ROOT / "docs" / "assets" / "figures.css").read_text("utf-8")
    page = "".join(figures.render(name, "en") for name in figures.names())
    used = {name for found in re.findall(r' class="([^"]*)"', page) for name in found.split()}
    assert {name for name in used if f".{name}" not in css} == set()


# --- words --------------------------------------------------------------------------------------


def test_every_label_is_written_in_both_languages_and_used() -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "tools" / "figlib").glob("*.py")]
    for figure, part in labels.table().items():
        for label, pair in part.items():
            assert len(pair) == 2 and all(text.strip() for text in pair), f"{figure}.{label}"
            holes = [set(re.findall(r"{(\w+)}", text)) for text in pair]
            assert holes[0] == holes[1], f"{figure}.{label}"
            stem = label.removesuffix("_asks").removesuffix("_bare")
            assert any(f'"{label}"' in text or f'"{stem}"' in text for text in sources) or (
                label in {"waiting"}
            ), f"{figure}.{label} is used nowhere"


def test_chinese_labels_have_no_english_punctuation() -> None:
    for figure, part in labels.table().items():
        for label, (zh, _) in part.items():
            assert not re.search(r"[\u4e00-\u9fff][,:;?!]", zh), f"{figure}.{label}: {zh}"


# --- fresh data ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "column", "figure"),
    [
        ("ch05_kv_cache", "used_mb", "ch05_rows"),
        ("ch05_kv_cache", "reserved_mb", "ch05_rows"),
        ("ch07_attention", "one_batch", "ch07_throughput"),
        ("ch07_attention", "one_at_a_time", "ch07_throughput"),
    ],
)
def test_another_digit_in_a_record_is_another_chart(
    benches: Path, key: str, column: str, figure: str
) -> None:
    before = figures.render(figure, "en")
    path = benches / f"{key}.json"
    document = json.loads(path.read_text("utf-8"))
    document["rows"][-1][column] *= 1.1
    path.write_text(json.dumps(document), "utf-8")
    assert figures.render(figure, "en") != before


def test_a_record_that_is_gone_or_lacks_a_column_is_named(benches: Path) -> None:
    path = benches / "ch07_attention.json"
    path.write_text(path.read_text("utf-8").replace("one_batch", "batched"), "utf-8")
    with pytest.raises(FigureError, match=r"^[^\n]*ch07_attention\.json[^\n]*one_batch[^\n]*$"):
        figures.render("ch07_throughput", "en")
    path.unlink()
    with pytest.raises(FigureError, match=r"^[^\n]*ch07_attention\.json[^\n]*$"):
        figures.render("ch07_throughput", "en")


def test_a_stale_trace_is_named_with_the_file_that_changed(recorded: Path) -> None:
    path = recorded / "ch08_radix_cache.json"
    document = json.loads(path.read_text("utf-8"))
    document["made_by"]["minisgl/kvcache/radix_tree.py"] = "another"
    path.write_text(json.dumps(document), "utf-8")
    pattern = r"^[^\n]*radix_tree\.py[^\n]*figures\.py record ch08_radix_cache$"
    for name in ("ch08_tree", "live_radix"):
        with pytest.raises(FigureError, match=pattern):
            figures.render(name, "en")
    figures.render("ch06_allocation", "en")  # made from another trace


def test_a_missing_trace_says_how_to_record_it(recorded: Path) -> None:
    for spoil in (lambda path: path.write_text("{"), lambda path: path.unlink()):
        spoil(recorded / "ch01_req.json")
        with pytest.raises(FigureError, match=r"^[^\n]*figures\.py record ch01_req$"):
            figures.render("ch01_lengths", "en")


@pytest.mark.parametrize("name", traces.RECORDERS)
def test_the_traces_are_of_the_code_that_is_there(name: str) -> None:
    assert traces.find_fault(name) is None


def test_traces_show_what_the_recorded_outputs_show() -> None:
    """The examples print some of what the traces hold; both come from runs of the same code."""
    printed = [json.loads(row[0]) for row in data.output_table(8, r"\s+free pages (\[.*\])")]
    shown, came = [], set()
    for event in traces.load("ch08_radix_cache")["events"]:
        if event["kind"] == "free" or (event["kind"] == "cache" and event["request"] not in came):
            came.add(event["request"])
            shown.append(event["free"])
    assert shown == printed

    rows = [row[0] for row in data.output_table(6, r"  ([a-zA-Z·]{64})  .*")]
    pools = []
    for event in traces.load("ch06_paged_pool")["events"]:
        owners = {page: name for name, pages in event["owners"].items() for page in pages}
        pools.append("".join(owners.get(page, "·") for page in range(64)))
    assert [row for row in rows if row not in pools] == []
    assert pools[-1] == rows[-1]


# --- interface ----------------------------------------------------------------------------------


def test_an_unknown_name_or_language_is_one_line_with_a_way_out() -> None:
    with pytest.raises(FigureError, match=r"^[^\n]*ch08_tre[^\n]*ch08_tree[^\n]*list$"):
        figures.render("ch08_tre", "en")
    with pytest.raises(FigureError, match=r"^[^\n]*zh[^\n]*en[^\n]*$"):
        figures.render("ch08_tree", "fr")
    with pytest.raises(FigureError, match=r"^[^\n]*ch08_tree[^\n]*ch08_radix_cache[^\n]*$"):
        traces.record("ch08_tree")


def test_drawing_needs_no_torch() -> None:
    code = (
        "import sys; from tools import figures\n"
        "for name in figures.names(): figures.render(name, 'zh')\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_the_command_lists_shows_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert figures.main(["list"]) == 0
    assert capsys.readouterr().out.split() == figures.names()
    assert figures.main(["show", "layers", "--lang", "en"]) == 0
    assert "Orchestration" in capsys.readouterr().out
    assert figures.main(["show", "layer"]) == 1
    assert capsys.readouterr().err.startswith("✗ ")
    assert figures.main(["check"]) == 0


def test_a_live_figure_shows_its_first_and_last_frame_without_javascript() -> None:
    for name in ("live_radix", "live_pages"):
        root = ET.fromstring(figures.render(name, "en"))
        frames = root.findall(".//div[@class='fig-frame']")
        shown = [number for number, frame in enumerate(frames) if frame.get("hidden") is None]
        assert len(frames) > 12 and shown == [0, len(frames) - 1]
        heights = {svg.get("height") for svg in root.iter(f"{SVG}svg") if svg.get("role") == "img"}
        assert len(heights) == 1, "the page would jump"


def test_neighbours_of_a_live_figure_differ_and_none_shows_an_empty_tree() -> None:
    for name in ("live_radix", "live_pages", "ch06_page_table"):
        frames = [canvas.body for _, canvas in canvases(name, "en")]
        assert all(one != other for one, other in pairwise(frames)), name
    assert all("page 0" in frame for frame in (c.body for _, c in canvases("live_radix", "en")))


def test_what_was_evicted_is_given_out_in_the_next_frame() -> None:
    """The figure once left out the pages that had just been evicted for the request."""
    drawn = drawing.MAKERS["live_radix"](labels.words("live_radix", "en"))
    captions = [frame.caption for frame in drawn.frames]
    at = next(n for n, caption in enumerate(captions) if caption.startswith("Too few"))
    assert "page 3 is taken" in captions[at]
    assert captions[at + 1].endswith("new pages: 3–4, 7–8")


def test_what_the_figures_claim_is_in_their_traces() -> None:
    products = traces.load("ch02_layers")["products"]
    for above, below in pairwise(products):
        assert above[:-1] == below[1:]  # equal distance, equal product
    cone = traces.load("ch05_kv_cache")["cone"]
    changed = [len(set(pieces)) > 1 for pieces in zip(*cone["pieces"], strict=True)].index(True)
    first, *rest = ([value > 0 for value in row] for row in cone["change"])
    assert [n for n, moved in enumerate(first) if moved] == [changed]
    for row in rest:
        assert row == [position >= changed for position in range(len(row))]
    call = traces.load("ch08_cache_req")
    freed = {*call["free_after"]} - {*call["free"]}
    assert freed and freed == {*call["old"]} - {*call["pages"]}


# --- the READMEs --------------------------------------------------------------------------------


def test_the_picture_of_the_readmes_is_fresh_and_stands_alone() -> None:
    assert readme.faults() == []
    for path in readme.files():
        text = path.read_text("utf-8")
        ET.fromstring(text)
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_another_digit_makes_the_picture_of_the_readmes_stale(benches: Path) -> None:
    path = benches / "ch08_ttft.json"
    document = json.loads(path.read_text("utf-8"))
    document["rows"][-1]["ratio"] += 1
    path.write_text(json.dumps(document), "utf-8")
    assert len(readme.faults()) == 4


# --- colours ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", readme.SCHEMES.values())
def test_texts_can_be_read_on_what_they_stand_on(scheme: str) -> None:
    css = (ROOT / "docs" / "assets" / "figures.css").read_text("utf-8")
    block = css.partition(f'[data-md-color-scheme="{scheme}"] {{')[2].partition("}")[0]
    colours = dict(re.findall(r"--fig-([\w-]+): (#\w{6});", block))
    fills = ["bg", "soft", "free", "accent-soft", *(f"r{n}" for n in range(1, 7))]
    pairs = [("fg", fill) for fill in fills] + [("dim", fill) for fill in fills]
    pairs += [(f"r{n}-line", "bg") for n in range(1, 7)]  # inked texts, and texts on strong cells
    pairs += [("accent", "bg")]
    for text, ground in pairs:
        assert contrast(colours[text], colours[ground]) >= 4.5, f"{text} on {ground}"


def contrast(a: str, b: str) -> float:
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

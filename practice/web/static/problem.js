// The page of one problem: statement, code, result, and what ties them together.
import { el, fill, icon, ICONS } from "./dom.js";
import { divider } from "./divider.js";
import { bookHome, title } from "./frame.js";
import { onLanguage, pick } from "./language.js";
import { statementNodes, typeset } from "./statement.js";
import { TEXTS } from "./texts.js";
import { workbench } from "./workbench.js";

/** Show a problem; `all` is the answer of /api/problems, which knows its chapter. */
export async function problemPage(main, problem, all) {
  title(problem.title);
  const chapter = all.chapters.find((one) => one.problems.some((card) => card.id === problem.id));
  const statement = el("div", { class: "statement-text" });
  const desk = el("div", { class: "desk" });
  const state = el(
    "span",
    { class: "state accepted", hidden: problem.state !== "accepted" },
    icon(ICONS.accepted),
    TEXTS.states.accepted,
  );
  const accepted = () => {
    state.hidden = false;
  };
  const bench = workbench(problem, accepted);
  fill(
    desk,
    el(
      "section",
      { class: "statement", id: "statement", tabindex: "0", "aria-label": TEXTS.statement },
      facts(problem, state),
      statement,
    ),
    divider(desk),
    bench.element,
  );
  skipToEditor(bench);
  fill(main, bar(problem, chapter, all.book), parts(), desk);
  main.classList.add("problem");
  const show = () => {
    fill(statement, statementNodes(pick(problem.statement)));
    typeset(statement);
  };
  onLanguage(show);
  show();
  bench.ready();
}

function skipToEditor(bench) {
  const go = (event) => {
    event.preventDefault();
    bench.focus();
  };
  const link = el("a", { class: "skip", href: "#code", onclick: go }, TEXTS.skipEditor);
  document.getElementById("skip").after(link);
}

function bar(problem, chapter, book) {
  return el(
    "div",
    { class: "bar" },
    el(
      "div",
      { class: "bar-title" },
      chapter ? where(chapter, book) : null,
      el("h1", {}, problem.title),
    ),
    el(
      "nav",
      { class: "turn", "aria-label": TEXTS.problems },
      problem.previous ? turn(problem.previous, TEXTS.previous, "left") : null,
      problem.next ? turn(problem.next, TEXTS.next, "right") : null,
    ),
  );
}

function where(chapter, book) {
  const name = {
    zh: `${TEXTS.chapter(chapter.number).zh} · ${chapter.title.zh}`,
    en: `${TEXTS.chapter(chapter.number).en} · ${chapter.title.en}`,
  };
  if (!book || !chapter.page) return el("p", { class: "where" }, name);
  const link = el("a", { href: bookHome(chapter.page) }, name);
  onLanguage(() => link.setAttribute("href", bookHome(chapter.page)));
  return el("p", { class: "where" }, link);
}

function turn(id, text, side) {
  const words = el("span", {}, text);
  const arrow = icon(ICONS[side]);
  return el(
    "a",
    { href: `/p/${id}`, rel: side === "left" ? "prev" : "next" },
    side === "left" ? [arrow, words] : [words, arrow],
  );
}

// On a narrow screen the three parts are one below the other; these links jump to them.
function parts() {
  return el(
    "nav",
    { class: "parts", "aria-label": TEXTS.parts },
    el("a", { href: "#statement" }, TEXTS.statement),
    el("a", { href: "#code" }, TEXTS.editor),
    el("a", { href: "#result" }, TEXTS.result),
  );
}

function facts(problem, state) {
  const { wall_s: seconds, memory_mb: mb } = problem.limits ?? {};
  return el(
    "p",
    { class: "facts-line" },
    el(
      "span",
      { class: `difficulty ${problem.difficulty}` },
      TEXTS.difficulties[problem.difficulty],
    ),
    el("span", {}, TEXTS.kinds[problem.kind]),
    problem.kind !== "predict" && seconds ? el("span", {}, TEXTS.limits(seconds, mb)) : null,
    state,
  );
}

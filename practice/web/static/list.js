// The list: where the reader stands, what comes next, and every problem by chapter.
import { el, fill, icon, ICONS } from "./dom.js";
import { bookHome, title } from "./frame.js";
import { onLanguage } from "./language.js";
import { TEXTS } from "./texts.js";

/** Show all problems in `main`; `all` is the answer of /api/problems. */
export function listPage(main, all) {
  title(TEXTS.problems);
  const chapters = all.chapters.filter((chapter) => chapter.problems.length);
  fill(
    main,
    el(
      "div",
      { class: "list" },
      el("h1", {}, TEXTS.problems),
      chapters.length ? standing(all) : el("p", {}, TEXTS.noProblems),
      chapters.map((chapter) => section(chapter, all)),
      all.broken.length ? broken(all.broken) : null,
    ),
  );
}

function standing(all) {
  const cards = all.chapters.flatMap((chapter) => chapter.problems);
  const next = cards.find((card) => card.id === all.next);
  return el(
    "div",
    { class: "standing" },
    all.book && !all.done ? el("p", {}, TEXTS.newHere, " ", bookLink("overview", TEXTS.overview)) : null,
    el("p", { class: "count" }, TEXTS.progress(all.done, all.total)),
    el("progress", {
      max: all.total,
      value: all.done,
      "aria-label": TEXTS.progress(all.done, all.total),
    }),
    next
      ? el(
          "p",
          { class: "next" },
          el(
            "a",
            { class: "button primary", href: `/p/${next.id}` },
            el("span", {}, next.state === "new" && !all.done ? TEXTS.begin : TEXTS.continue),
          ),
          el("span", { class: "next-title" }, next.title),
        )
      : el("p", { class: "next" }, TEXTS.allDone),
  );
}

function section(chapter, { book, verified }) {
  const heading = `chapter-${chapter.number}`;
  return el(
    "section",
    { "aria-labelledby": heading },
    el(
      "div",
      { class: "chapter" },
      el(
        "h2",
        { id: heading },
        el("span", { class: "number" }, String(chapter.number).padStart(2, "0")),
        el("span", {}, chapter.title),
        verified.includes(chapter.number)
          ? el("span", { class: "verified" }, "✓ ", el("span", {}, TEXTS.verified))
          : null,
      ),
      book && chapter.page ? bookLink(chapter.page, TEXTS.readChapter) : null,
    ),
    el("ul", { class: "cards" }, chapter.problems.map(card)),
  );
}

function bookLink(page, text) {
  const link = el("a", { href: bookHome(page) }, text);
  onLanguage(() => link.setAttribute("href", bookHome(page)));
  return link;
}

function card(problem) {
  return el(
    "li",
    {},
    el(
      "a",
      { class: "card", href: `/p/${problem.id}` },
      el("span", { class: `state ${problem.state}`, title: TEXTS.states[problem.state] }, icon(ICONS[problem.state])),
      el("span", { class: "card-title" }, problem.title),
      el("span", { class: "unseen" }, TEXTS.states[problem.state]),
      el("span", { class: "kind" }, TEXTS.kinds[problem.kind]),
      el(
        "span",
        { class: `difficulty ${problem.difficulty}` },
        TEXTS.difficulties[problem.difficulty],
      ),
    ),
  );
}

function broken(lines) {
  return el(
    "div",
    { class: "broken" },
    el("p", {}, TEXTS.broken),
    el(
      "ul",
      {},
      lines.map((line) => el("li", {}, line)),
    ),
  );
}

// A verdict as a headline and a table. Whatever a program printed is only ever a text node.
import { el, icon, ICONS } from "./dom.js";
import { TEXTS } from "./texts.js";

const NOT_COUNTED = ["IE", "SK"];

/** The verdict's elements; `goTo(line)` moves the editor, `after` are the buttons below it. */
export function verdictView({ verdict, kind, notes = [] }, { goTo, after }) {
  const tone = toneOf(verdict);
  const passed = verdict.code === "AC";
  return [
    el(
      "div",
      { class: `verdict ${tone}` },
      el(
        "span",
        { class: "badge" },
        icon(passed ? ICONS.accepted : ICONS.tried),
        el("b", {}, verdict.code),
      ),
      el(
        "div",
        {},
        el("h3", {}, headline({ verdict, kind })),
        el(
          "p",
          { class: "measured" },
          kind === "run" ? TEXTS.ofRun : TEXTS.ofSubmit,
          measured(verdict),
        ),
      ),
    ),
    table(verdict, passed),
    verdict.line
      ? el(
          "p",
          {},
          el(
            "button",
            { type: "button", onclick: () => goTo(verdict.line) },
            TEXTS.goToLine(verdict.line),
          ),
        )
      : null,
    notes.map((note) => el("p", { class: "note" }, note)),
    after.length ? el("p", { class: "after" }, after) : null,
  ];
}

/** A run that passes is no acceptance; one that has no cases has looked at the form alone. */
function headline({ verdict, kind }) {
  if (verdict.code !== "AC" || kind !== "run") return verdict.meaning;
  return verdict.cases ? TEXTS.samplesPass : TEXTS.formRight;
}

/** One line for a screen reader. */
export function spoken({ verdict, kind }) {
  if (verdict.code === "AC" && kind === "run") return headline({ verdict, kind });
  const group = verdict.group ? groupOf(verdict) : { zh: "", en: "" };
  return {
    zh: `${verdict.code} ${verdict.meaning.zh}${group.zh && `，${group.zh}`}`,
    en: `${verdict.code} ${verdict.meaning.en}${group.en && `, ${group.en}`}`,
  };
}

/** "good", "bad", or "aside" for what says nothing about the reader's work. */
export function toneOf(verdict) {
  if (verdict.code === "AC") return "good";
  return NOT_COUNTED.includes(verdict.code) ? "aside" : "bad";
}

function measured(verdict) {
  const { code, cases, wall_s: seconds, peak_mb: mb } = verdict;
  const right = code === "AC" ? TEXTS.cases : TEXTS.casesRight;
  return [
    cases ? [" · ", el("span", {}, right(cases))] : null,
    mb ? [" · ", el("span", {}, TEXTS.measured(seconds.toFixed(2), Math.round(mb)))] : null,
  ];
}

function table(verdict, passed) {
  const rows = [
    [TEXTS.group, verdict.group && el("span", {}, groupOf(verdict))],
    [TEXTS.reason, text(verdict.message) && el("span", {}, verdict.message)],
    [TEXTS.firstWrong, code(verdict.first_wrong_index)],
    [TEXTS.expected, code(verdict.expected, "expected")],
    [TEXTS.got, code(verdict.got, "got")],
    [TEXTS.traceback, code(verdict.traceback)],
    [TEXTS.input, code(verdict.case)],
    [TEXTS.output, code(verdict.stdout)],
  ].filter(([, value]) => value);
  if (!rows.length) return null;
  return el(
    "table",
    { class: "facts", "aria-label": passed ? TEXTS.result : TEXTS.failing },
    el(
      "tbody",
      {},
      rows.map(([name, value]) =>
        el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, value)),
      ),
    ),
  );
}

function groupOf(verdict) {
  const group = TEXTS.groups[verdict.group] ?? { zh: verdict.group, en: verdict.group };
  const label = text(verdict.label) ? verdict.label : { zh: "", en: "" };
  return {
    zh: label.zh ? `${group.zh}：${label.zh}` : group.zh,
    en: label.en ? `${group.en}: ${label.en}` : group.en,
  };
}

function code(value, name = "") {
  return value ? el("pre", { class: name, tabindex: "0" }, value) : null;
}

function text(both) {
  return both && (both.zh || both.en);
}

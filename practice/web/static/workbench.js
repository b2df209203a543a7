// The right half of a problem: code, buttons, and the tabs with what comes of them.
import { CodePane } from "./code.js";
import { ask } from "./dialog.js";
import { el } from "./dom.js";
import { announce } from "./frame.js";
import { hintsPanel } from "./hints.js";
import { historyPanel } from "./history.js";
import { solutionPanel } from "./solution.js";
import { makeTabs } from "./tabs.js";
import { TEXTS } from "./texts.js";
import { Verdicts } from "./verdicts.js";

/**
 * The workbench of a problem: `element`, `focus()`, and `ready()` to call once it is in the page;
 * `accepted()` hears of an AC.
 */
export function workbench(problem, accepted) {
  const { id } = problem;
  const code = new CodePane(problem);
  const [hints, history, solution] = [el("div"), el("div"), el("div")];
  const verdicts = new Verdicts(problem, code, {
    open: (tab, focus) => tabs.open(tab, focus),
    accepted() {
      solutionPanel(solution, id, true);
      accepted();
    },
  });
  const openEarlier = (source) => {
    code.open(source);
    announce(TEXTS.earlierOpened);
  };
  const loadHistory = () => historyPanel(history, id, openEarlier);
  const tabs = makeTabs(TEXTS.result, [
    { name: "result", title: TEXTS.result, panel: verdicts.panel },
    ...(problem.hints.total ? [{ name: "hints", title: TEXTS.hints, panel: hints }] : []),
    { name: "history", title: TEXTS.history, panel: history, onOpen: loadHistory },
    { name: "solution", title: TEXTS.solution, panel: solution },
  ]);
  hintsPanel(hints, id, problem.hints);
  solutionPanel(solution, id, problem.solution.available);
  return {
    element: el(
      "section",
      { class: "bench", "aria-label": TEXTS.workbench },
      code.element,
      el("div", { class: "actions" }, verdicts.buttons, rare(code, problem, verdicts)),
      el(
        "div",
        { class: "outcome", id: "result" },
        el("h2", { class: "unseen" }, TEXTS.result),
        tabs.bar,
        tabs.panels,
      ),
    ),
    focus: () => code.focus(),
    ready() {
      code.ready();
      verdicts.resume();
    },
  };
}

// What replaces the whole text asks first.
function rare(code, problem, verdicts) {
  const startOver = async () => {
    if (!(await ask(TEXTS.startOverAsk, TEXTS.yes))) return;
    await code.startOver().catch((error) => verdicts.lost(error.text));
  };
  const openFile = async () => {
    if (!(await ask(TEXTS.openFileAsk, TEXTS.yes))) return;
    await code.openFile().catch((error) => verdicts.lost(error.text));
  };
  return el(
    "div",
    { class: "more" },
    problem.file ? el("button", { type: "button", onclick: openFile }, TEXTS.openFile) : null,
    el("button", { type: "button", onclick: startOver }, TEXTS.startOver),
  );
}

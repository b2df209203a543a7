// The buttons that send the code, and the panel that shows what comes back.
import { el, fill, icon, ICONS } from "./dom.js";
import { announce } from "./frame.js";
import { resume, start } from "./judging.js";
import { TEXTS } from "./texts.js";
import { spoken, verdictView } from "./verdict.js";

const STACKED = "(max-width: 56rem), (max-height: 36rem)"; // as in problem.css
const MAC = /Mac|iPhone|iPad/.test(navigator.platform);

/**
 * Runs and submissions of one problem. `code` is its CodePane; `open(tab)` shows a tab of the
 * page, `accepted()` hears of an AC.
 */
export class Verdicts {
  constructor(problem, code, { open, accepted }) {
    Object.assign(this, { problem, code, open, accepted, busy: false });
    const predicts = problem.kind === "predict";
    const [run, quiet] = predicts
      ? [TEXTS.check, TEXTS.notAnswered]
      : [TEXTS.run, TEXTS.nothingYet];
    this.panel = el("div", {}, el("p", { class: "quiet" }, quiet));
    this.buttons = [
      this.#button("run", run, "", "'", "Control+' Control+Shift+Enter"),
      this.#button("submit", TEXTS.submit, "primary", "↵", "Control+Enter"),
    ];
    document.addEventListener("keydown", (event) => this.#key(event), true);
  }

  /** Go on with what was on its way before a reload. */
  resume() {
    resume(this.problem.id, this);
  }

  /** Send what is in the editor: "run" or "submit". */
  async send(kind) {
    if (this.busy) return;
    this.open("result");
    this.code.show();
    this.code.draft.save();
    try {
      await start(this.problem.id, kind, this.code.text(), this);
    } catch (error) {
      this.lost(error.text);
    }
  }

  /** One step on the way to the verdict. */
  state(text) {
    this.#setBusy(true);
    const pulse = el("span", { class: "pulse", "aria-hidden": "true" });
    fill(this.panel, el("p", { class: "waiting" }, pulse, el("span", {}, text)));
    announce(text);
  }

  /** There will be no verdict, and this is why. */
  lost(text) {
    this.#setBusy(false);
    fill(this.panel, el("p", { class: "refused" }, text));
    announce(text);
  }

  /** The verdict is here. */
  verdict(answer) {
    this.#setBusy(false);
    const goTo = (line) => this.code.goTo(line);
    fill(this.panel, verdictView(answer, { goTo, after: this.#after(answer) }));
    this.panel.scrollTop = 0;
    announce(spoken(answer));
    if (answer.kind === "submit" && answer.verdict.code === "AC") this.accepted();
    this.#reveal();
  }

  #after({ verdict, kind, notes = [] }) {
    if (kind !== "submit") return [];
    const to = (tab, text) =>
      el("button", { type: "button", onclick: () => this.open(tab, true) }, text);
    const { next, hints } = this.problem;
    if (verdict.code !== "AC") {
      return notes.length && hints.total ? [to("hints", TEXTS.hints)] : [];
    }
    const onward = next
      ? el(
          "a",
          { class: "button primary", href: `/p/${next}` },
          el("span", {}, TEXTS.next),
          icon(ICONS.right),
        )
      : el("a", { class: "button", href: "/" }, TEXTS.toList);
    return [onward, to("solution", TEXTS.solution)];
  }

  #button(kind, text, look, key, shortcuts) {
    return el(
      "button",
      {
        type: "button",
        class: look,
        "aria-keyshortcuts": MAC ? shortcuts.replaceAll("Control", "Meta") : shortcuts,
        onclick: () => this.send(kind),
      },
      text,
      el("kbd", { "aria-hidden": "true" }, `${MAC ? "⌘" : "Ctrl"} ${key}`),
    );
  }

  // In the capture phase, before CodeMirror, whose own Ctrl-Enter would insert a line.
  #key(event) {
    if (event.isComposing || event.altKey || !(event.ctrlKey || event.metaKey)) return;
    const sent = event.key === "Enter" ? (event.shiftKey ? "run" : "submit") : null;
    const kind = event.key === "'" ? "run" : sent;
    if (!kind || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    event.stopPropagation();
    this.send(kind);
  }

  // Not `disabled`: that would throw the focus out of a button that was just pressed.
  #setBusy(now) {
    this.busy = now;
    for (const button of this.buttons) button.setAttribute("aria-disabled", String(now));
  }

  // On a narrow or low screen the result is below the code, and would come unseen.
  #reveal() {
    if (!matchMedia(STACKED).matches) return;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const behavior = calm ? "auto" : "smooth";
    document.getElementById("result").scrollIntoView({ behavior, block: "start" });
  }
}

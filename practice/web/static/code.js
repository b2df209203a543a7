// The code of a problem: the editor, its draft, and the step's files beside it.
import { ApiError, call, of } from "./api.js";
import { el, fill } from "./dom.js";
import { Draft } from "./drafts.js";
import { makeEditor } from "./editor.js";
import { announce, notice, removeNotice } from "./frame.js";
import { moment, say } from "./language.js";
import { TEXTS } from "./texts.js";
import { treeView } from "./tree.js";

/** The pane of one problem; `ready()` makes the editor once `element` is in the page. */
export class CodePane {
  constructor(problem) {
    this.problem = problem;
    this.host = el("div", { class: "editor" });
    this.viewer = el("div", { class: "view", hidden: true });
    this.saved = el("span", { class: "saved" });
    this.tree = problem.step
      ? treeView(problem.step, this.viewer, (open) => this.#view(open))
      : null;
    this.element = el(
      "div",
      { class: "code", id: "code" },
      el("h2", { class: "unseen" }, TEXTS.editor),
      problem.step ? this.#stepBar() : null,
      el("div", { class: "code-body" }, this.host, this.viewer, this.tree?.panel),
      el("p", { class: "under" }, this.saved, el("span", { class: "escape" }, TEXTS.escape)),
    );
  }

  ready() {
    const settle = this.#openDraft();
    this.editor = makeEditor(this.host, {
      text: this.draft.source,
      label: TEXTS.editorLabel,
      symbols: this.problem.step?.symbols.map((symbol) => symbol.name),
      onChange: (text) => this.draft.change(text),
    });
    if (this.problem.kind === "engine") this.editor.showFirst();
    settle();
  }

  /** What is in the editor now. */
  text() {
    return this.editor.text();
  }

  /** Put the cursor into the reader's own file. */
  focus() {
    this.show();
    this.editor.focus();
  }

  /** Put a text into the editor, as an edit that can be undone. */
  open(source) {
    this.focus();
    this.editor.replace(source);
  }

  /** Show the reader's own file and put the cursor on a line of it. */
  goTo(line) {
    this.show();
    this.editor.goTo(line);
  }

  /** Show the reader's own file instead of another one of the step. */
  show() {
    fill(this.viewer);
    this.#view(false);
  }

  /** Open the file of the command line as it is on the disk now; throws ApiError. */
  async openFile() {
    const { file } = await call("GET", of(this.problem.id));
    if (file === null) throw new ApiError(404, TEXTS.noFile);
    this.open(file);
  }

  /** Back to the starter; throws ApiError. */
  async startOver() {
    const { file, starter } = this.problem;
    // Without a draft the file of the command line would come back at the next visit.
    if (file === null) await this.draft.drop(starter);
    this.open(starter);
  }

  #view(open) {
    this.viewer.hidden = !open;
    this.host.hidden = open;
  }

  #stepBar() {
    const { step, kind } = this.problem;
    const what = kind === "bug" ? TEXTS.suspects : TEXTS.toWrite;
    const jump = (name) => {
      this.show();
      this.editor.jump(name);
    };
    return el(
      "div",
      { class: "step" },
      el(
        "div",
        { class: "symbols", role: "group", "aria-label": what },
        el("span", { class: "quiet" }, what),
        step.symbols.map(({ name }) =>
          el(
            "button",
            { type: "button", class: "symbol", onclick: () => jump(name) },
            name.split(".").at(-1),
          ),
        ),
      ),
      this.tree.toggle,
    );
  }

  // Draft on the server, else the file of the command line, else the starter. What this browser
  // holds and never could save comes first when it is the newest, and is offered when it is not.
  #openDraft() {
    const { draft, file, starter } = this.problem;
    const server = draft?.source ?? file ?? starter;
    this.draft = new Draft(this.problem.id, server, {
      show: (text, kind) => {
        say(this.saved, text);
        this.saved.dataset.kind = kind;
      },
      other: (version) => this.#offer(version),
    });
    const kept = this.draft.unsaved();
    if (!kept || kept.source === server) {
      this.draft.forget();
      return () => {};
    }
    if (!draft || kept.at >= draft.at) {
      this.draft.source = kept.source;
      return () => this.draft.save();
    }
    return () => this.#offer({ source: kept.source, text: TEXTS.unsaved(moment(kept.at)) });
  }

  #offer({ source, text }) {
    const choose = (next) => {
      removeNotice("other");
      this.draft.choose(next);
      this.open(next);
    };
    const button = (name, next) =>
      el("button", { type: "button", onclick: () => choose(next()) }, name);
    notice(
      "other",
      el("span", {}, text),
      button(TEXTS.takeOther, () => source),
      button(TEXTS.keepMine, () => this.text()),
    );
    announce(text);
  }
}

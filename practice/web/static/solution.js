// The reference solution: after an AC, or before it for one who insists, which is recorded.
import { call, of } from "./api.js";
import { ask } from "./dialog.js";
import { el, fill } from "./dom.js";
import { makeEditor } from "./editor.js";
import { TEXTS } from "./texts.js";

/** Fill `panel`; `available` says whether the solution is open to this reader. */
export function solutionPanel(panel, id, available) {
  const load = async (method, body) => {
    try {
      const { text } = await call(method, of(id, "/solution"), body);
      const host = el("div", { class: "viewer" });
      fill(panel, host);
      makeEditor(host, { text, label: TEXTS.solutionLabel }).focus();
    } catch (error) {
      panel.append(el("p", { class: "refused" }, error.text));
    }
  };
  if (available) {
    const open = () => load("GET");
    fill(panel, el("button", { type: "button", onclick: open }, TEXTS.openSolution));
    return;
  }
  const insist = async () => {
    if (await ask(TEXTS.spoilAsk, TEXTS.show)) await load("POST", { spoil: true });
  };
  fill(
    panel,
    el("p", { class: "quiet" }, TEXTS.solutionLocked),
    el("button", { type: "button", onclick: insist }, TEXTS.showAnyway),
  );
}

// A question before something that cannot be taken back.
import { el } from "./dom.js";
import { TEXTS } from "./texts.js";

/** Ask; true when the reader agreed. Escape and the first button say no. */
export function ask(question, agree) {
  return new Promise((resolve) => {
    const finish = (answer) => {
      dialog.close();
      dialog.remove();
      resolve(answer);
    };
    const dialog = el(
      "dialog",
      { "aria-labelledby": "question", oncancel: () => finish(false) },
      el("p", { id: "question" }, question),
      el(
        "div",
        { class: "answers" },
        el("button", { type: "button", onclick: () => finish(false) }, TEXTS.cancel),
        el("button", { type: "button", class: "primary", onclick: () => finish(true) }, agree),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}

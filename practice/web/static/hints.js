// Hints, one at a time: each asks for the next one by hand.
import { call, of } from "./api.js";
import { el, fill } from "./dom.js";
import { announce } from "./frame.js";
import { TEXTS } from "./texts.js";

/** Fill `panel` with the hints taken so far and the button for the next. */
export function hintsPanel(panel, id, hints) {
  const show = ({ taken, total, texts }) => {
    const next = el("button", { type: "button", onclick: take }, TEXTS.takeHint(taken + 1, total));
    fill(
      panel,
      taken ? null : el("p", { class: "quiet" }, TEXTS.hintsFirst),
      el(
        "ol",
        { class: "hints" },
        texts.map((text) => el("li", {}, text)),
      ),
      taken < total ? next : el("p", { class: "quiet" }, TEXTS.hintsDone),
    );
  };
  const take = async () => {
    try {
      const answer = await call("POST", of(id, "/hint"));
      show(answer);
      announce(answer.texts.at(-1));
      (panel.querySelector("button") ?? panel).focus();
    } catch (error) {
      panel.append(el("p", { class: "refused" }, error.text));
    }
  };
  show(hints);
}

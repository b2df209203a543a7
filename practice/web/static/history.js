// What was submitted before; any of it can be opened in the editor again.
import { call, of } from "./api.js";
import { el, fill } from "./dom.js";
import { moment } from "./language.js";
import { TEXTS } from "./texts.js";
import { toneOf } from "./verdict.js";

/** Load the history into `panel`; `open(source)` puts an earlier one into the editor. */
export async function historyPanel(panel, id, open) {
  fill(panel, el("p", { class: "quiet" }, TEXTS.loading));
  try {
    const rows = await call("GET", of(id, "/history"));
    if (!rows.length) fill(panel, el("p", { class: "quiet" }, TEXTS.noHistory));
    else
      fill(
        panel,
        el(
          "ul",
          { class: "history" },
          rows.map((row) => entry(row, open)),
        ),
      );
  } catch (error) {
    fill(panel, el("p", { class: "refused" }, error.text));
  }
}

function entry(row, open) {
  const at = moment(row.at);
  const without = row.state === "interrupted" ? TEXTS.interrupted : TEXTS.waiting;
  return el(
    "li",
    {},
    el("span", { class: `code ${row.code ? toneOf(row) : "aside"}` }, row.code || "…"),
    el("span", {}, row.verdict?.meaning ?? without),
    el("time", {}, at),
    el("button", { type: "button", onclick: () => open(row.source) }, TEXTS.openEarlier),
  );
}

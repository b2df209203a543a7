// The line between statement and code: dragged, or moved with the arrow keys, and remembered.
import { el } from "./dom.js";
import { keep, kept } from "./keep.js";
import { TEXTS } from "./texts.js";

const KEY = "judge.split";
const [LEAST, MOST, USUAL, STEP] = [25, 70, 42, 3];

/** The divider of `desk`, whose CSS reads --split. */
export function divider(desk) {
  const line = el("div", {
    class: "divider",
    role: "separator",
    tabindex: "0",
    "aria-orientation": "vertical",
    "aria-label": TEXTS.divider,
    "aria-valuemin": String(LEAST),
    "aria-valuemax": String(MOST),
  });
  let percent = Number(kept(KEY)) || USUAL;
  const move = (next) => {
    percent = Math.min(MOST, Math.max(LEAST, next));
    desk.style.setProperty("--split", `${percent}%`);
    line.setAttribute("aria-valuenow", String(Math.round(percent)));
    keep(KEY, String(percent));
  };
  line.addEventListener("pointerdown", (event) => line.setPointerCapture(event.pointerId));
  line.addEventListener("pointermove", (event) => {
    if (!line.hasPointerCapture(event.pointerId)) return;
    const { left, width } = desk.getBoundingClientRect();
    move(((event.clientX - left) / width) * 100);
  });
  line.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (!by) return;
    move(percent + by);
    event.preventDefault();
  });
  move(percent);
  return line;
}

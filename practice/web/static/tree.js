// The step's files beside the editor: a look at any of them, without leaving one's own.
import { call } from "./api.js";
import { el, fill, icon, ICONS } from "./dom.js";
import { makeEditor } from "./editor.js";
import { TEXTS } from "./texts.js";

const ROOM = "(min-width: 90rem)"; // statement, code and tree side by side

/**
 * `{toggle, panel}`: a button and the tree that it opens. A click in the tree shows a file, read
 * only, in `viewer`; `onView(open)` hears when the viewer opens or closes.
 */
export function treeView(step, viewer, onView) {
  const show = (path) =>
    path === step.path ? close(viewer, onView) : open(step, path, viewer, onView);
  const mark = (event) => {
    for (const button of panel.querySelectorAll("button")) {
      button.setAttribute("aria-current", String(button === event.target.closest("button")));
    }
  };
  const panel = el(
    "nav",
    { class: "tree", id: "tree", "aria-label": TEXTS.tree(step.number), onclick: mark },
    branch(folders(step.tree), step, show),
  );
  const toggle = el(
    "button",
    { type: "button", class: "plain", "aria-controls": "tree", onclick: () => turn(panel.hidden) },
    icon(ICONS.file),
    TEXTS.tree(step.number),
  );
  const turn = (visible) => {
    panel.hidden = !visible;
    toggle.setAttribute("aria-expanded", String(visible));
    const mine = panel.querySelector(".mine");
    if (visible && mine) panel.scrollTop = mine.offsetTop - panel.clientHeight / 2;
  };
  turn(false);
  if (matchMedia(ROOM).matches) requestAnimationFrame(() => turn(true)); // measured in the page
  return { toggle, panel };
}

function close(viewer, onView) {
  fill(viewer);
  onView(false);
}

async function open(step, path, viewer, onView) {
  const host = el("div", { class: "viewer" });
  const back = el(
    "button",
    { type: "button", onclick: () => close(viewer, onView) },
    TEXTS.backToYours,
  );
  const tag = el("span", { class: "tag" }, TEXTS.readOnly);
  const bar = el("div", { class: "viewer-bar" }, el("code", {}, path), tag, back);
  try {
    const text = await source(step.number, path);
    fill(viewer, bar, host);
    onView(true);
    makeEditor(host, { text, label: TEXTS.viewerLabel(path) }).focus();
  } catch (error) {
    fill(viewer, bar, el("p", { class: "refused" }, error.text));
    onView(true);
  }
}

async function source(number, path) {
  const answer = await call("GET", `/api/step/${number}/file?path=${encodeURIComponent(path)}`);
  return answer.text;
}

function folders(entries) {
  const root = new Map();
  for (const entry of entries) {
    const parts = entry.path.split("/");
    let here = root;
    for (const part of parts.slice(0, -1)) {
      if (!here.has(part)) here.set(part, new Map());
      here = here.get(part);
    }
    here.set(parts.at(-1), entry);
  }
  return root;
}

function branch(folder, step, open) {
  const items = [...folder].map(([name, inside]) => {
    if (inside instanceof Map) {
      return el("li", {}, el("span", { class: "folder" }, `${name}/`), branch(inside, step, open));
    }
    const mine = inside.path === step.path;
    return el(
      "li",
      {},
      el(
        "button",
        { type: "button", class: mine ? "mine" : "", onclick: () => open(inside.path) },
        icon(ICONS.file),
        name,
        mine ? el("span", { class: "unseen" }, TEXTS.yours) : null,
        TEXTS.marks[inside.mark] ? el("span", { class: "tag" }, TEXTS.marks[inside.mark]) : null,
      ),
    );
  });
  return el("ul", {}, items);
}

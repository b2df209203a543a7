// Tabs as the ARIA pattern has them: arrow keys move, one tab is in the Tab order.
import { el } from "./dom.js";

/** `{bar, panels, open(name)}` for a list of {name, title, panel, onOpen}. */
export function makeTabs(label, list) {
  const bar = el("div", { class: "tabs", role: "tablist", "aria-label": label });
  const open = (name, focus = false) => {
    for (const one of list) {
      const chosen = one.name === name;
      one.tab.setAttribute("aria-selected", String(chosen));
      one.tab.tabIndex = chosen ? 0 : -1;
      one.panel.hidden = !chosen;
      if (chosen && focus) one.tab.focus();
      if (chosen) one.onOpen?.();
    }
  };
  for (const one of list) {
    one.tab = el(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${one.name}`,
        "aria-controls": `panel-${one.name}`,
        onclick: () => open(one.name),
      },
      one.title,
    );
    Object.assign(one.panel, { id: `panel-${one.name}`, tabIndex: -1 });
    one.panel.setAttribute("role", "tabpanel");
    one.panel.setAttribute("aria-labelledby", one.tab.id);
    bar.append(one.tab);
  }
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const now = list.findIndex((one) => one.tab === event.target);
    open(list[(now + step + list.length) % list.length].name, true);
    event.preventDefault();
  });
  open(list[0].name);
  return { bar, panels: list.map((one) => one.panel), open };
}

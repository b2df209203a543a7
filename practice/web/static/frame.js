// What every page has: the header with language and colours, notices, and what is read aloud.
import { onConnection } from "./api.js";
import { el, fill, icon, ICONS } from "./dom.js";
import { keep, kept } from "./keep.js";
import { language, onLanguage, pick, say, setLanguage } from "./language.js";
import { TEXTS } from "./texts.js";

const KEY = "judge.theme";

/** Fill the header; the link to the book only where there is a book. */
export function header({ book = false } = {}) {
  say(document.getElementById("skip"), TEXTS.skip);
  const bookLink = el("a", { href: bookHome() }, TEXTS.book);
  onLanguage(() => bookLink.setAttribute("href", bookHome()));
  fill(
    document.getElementById("top"),
    el("a", { class: "brand", href: "/" }, TEXTS.brand),
    el(
      "nav",
      { "aria-label": TEXTS.site },
      book ? bookLink : null,
      el("a", { href: "/", "aria-current": "true" }, TEXTS.problems),
    ),
    el("div", { class: "switches" }, languageButton(), themeButton()),
  );
}

/** Address of the book in the reader's language, or of one of its pages. */
export function bookHome(page = "") {
  const language_ = language() === "en" ? "en/" : "";
  return `/book/${language_}${page ? `${page}/` : ""}`;
}

/** The title of the window, in both languages. */
export function title(text) {
  const write = () => {
    document.title = `${pick(text)} · mini-sglang`;
  };
  write();
  onLanguage(write);
}

/** Have a screen reader say a text when it has time; nothing is shown. */
export function announce(text) {
  document.getElementById("live").textContent = pick(text);
}

/** Show a line below the header; a second notice of the same name replaces the first. */
export function notice(name, ...children) {
  removeNotice(name);
  const line = el("div", { class: `notice notice-${name}`, "data-name": name }, ...children);
  document.getElementById("notices").append(line);
  return line;
}

/** Take a notice away, if it is there. */
export function removeNotice(name) {
  document.querySelector(`#notices [data-name="${name}"]`)?.remove();
}

/** Say when the server is gone and when it is back; `retry` is what the button does. */
export function watchConnection(retry) {
  onConnection((gone) => {
    if (gone) {
      const again = el("button", { type: "button", onclick: retry }, TEXTS.retry);
      notice("gone", el("span", {}, TEXTS.gone), again);
      announce(TEXTS.gone);
    } else {
      removeNotice("gone");
      announce(TEXTS.back);
    }
  });
}

function languageButton() {
  const flip = () => setLanguage(language() === "zh" ? "en" : "zh");
  return el(
    "button",
    { type: "button", id: "language", onclick: flip, "aria-label": TEXTS.toLanguageLabel },
    TEXTS.toLanguage,
  );
}

function themeButton() {
  const root = document.documentElement;
  const button = el("button", { type: "button", id: "theme", class: "round" });
  const use = (theme) => {
    root.dataset.theme = theme;
    say(button, theme === "dark" ? TEXTS.toLight : TEXTS.toDark, "aria-label");
    fill(button, icon(theme === "dark" ? ICONS.sun : ICONS.moon));
  };
  button.addEventListener("click", () => {
    use(root.dataset.theme === "dark" ? "light" : "dark");
    keep(KEY, root.dataset.theme);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (system) => {
    if (!kept(KEY)) use(system.matches ? "dark" : "light");
  });
  use(root.dataset.theme);
  return button;
}

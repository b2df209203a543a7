// The statement: HTML from the server, rebuilt here from what a statement may contain.
//
// The server renders Markdown with HTML switched off, and the CSP forbids scripts. This is the
// third wall: DOMParser makes a document that runs nothing, and only known elements and
// attributes are copied from it as fresh nodes.

const ELEMENTS = new Set(
  "a blockquote br code div em h2 h3 h4 hr li ol p pre span strong sub sup table tbody td th thead tr ul".split(
    " ",
  ),
);
const LEFT_OUT = new Set(["script", "style", "template", "iframe", "object", "svg", "math"]);
const CLASSES = new Set(["math"]);

/** The nodes of a statement; its first heading is left out, since the page shows the title. */
export function statementNodes(html) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  const first = parsed.body.firstElementChild;
  if (first?.localName === "h1") first.remove();
  return copies(parsed.body);
}

/** Typeset the formulas below `root`; the library is fetched only when there is one. */
export async function typeset(root) {
  const formulas = root.querySelectorAll(".math");
  if (!formulas.length) return;
  stylesheet("/static/vendor/katex/katex.css");
  const { default: katex } = await import("./vendor/katex/katex.mjs");
  for (const formula of formulas) {
    const displayMode = formula.localName === "div";
    // A formula that cannot be read stays as its source, in red: no reason to lose the page.
    katex.render(formula.textContent, formula, { displayMode, throwOnError: false, trust: false });
  }
}

function copies(parent) {
  return [...parent.childNodes].flatMap(copy);
}

function copy(node) {
  if (node.nodeType === Node.TEXT_NODE) return [document.createTextNode(node.data)];
  if (node.nodeType !== Node.ELEMENT_NODE || LEFT_OUT.has(node.localName)) return [];
  if (node.localName === "h1") return [heading(node)];
  if (!ELEMENTS.has(node.localName)) return copies(node);
  const element = document.createElement(node.localName);
  for (const name of node.classList) if (CLASSES.has(name)) element.classList.add(name);
  if (node.localName === "a") link(element, node.getAttribute("href") ?? "");
  element.append(...copies(node));
  if (node.localName === "pre") element.tabIndex = 0; // it may scroll sideways
  return node.localName === "table" ? [scroller(element)] : [element];
}

function heading(node) {
  const element = document.createElement("h2");
  element.append(...copies(node));
  return element;
}

function link(element, href) {
  if (!/^(https?:\/\/|\/(?!\/)|#)/.test(href)) return;
  element.setAttribute("href", href);
  if (href.startsWith("http")) {
    element.rel = "noreferrer noopener";
    element.target = "_blank";
  }
}

function scroller(table) {
  const box = document.createElement("div");
  box.className = "wide";
  box.append(table);
  return box;
}

function stylesheet(href) {
  if (document.querySelector(`link[href="${href}"]`)) return;
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = href;
  document.head.append(link);
}

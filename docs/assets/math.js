// Formulas. KaTeX is fetched only by a page that has some.
const formulas = document.querySelectorAll(".arithmatex");
if (formulas.length) {
  const folder = new URL("katex/", import.meta.url);
  const style = document.createElement("link");
  style.rel = "stylesheet";
  style.href = new URL("katex.css", folder).href;
  document.head.append(style);
  const { default: katex } = await import(new URL("katex.mjs", folder).href);
  for (const formula of formulas) {
    const source = formula.textContent.trim().slice(2, -2); // without \( \) or \[ \]
    katex.render(source, formula, { displayMode: formula.tagName === "DIV", throwOnError: false });
  }
}

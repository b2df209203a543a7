// Code that the reader is to write is folded. One switch opens all of it, on every page from then on.
const KEY = "book.unfold";
const folds = document.querySelectorAll("details.write, details.note");
for (const label of document.querySelectorAll("[data-unfold]")) {
  const box = label.querySelector("input");
  const use = () => {
    for (const fold of folds) fold.open = box.checked;
  };
  label.hidden = false;
  try {
    box.checked = localStorage.getItem(KEY) === "all";
  } catch {
    // Without storage the switch holds for this page.
  }
  if (box.checked) use();
  box.addEventListener("change", () => {
    use();
    try {
      localStorage.setItem(KEY, box.checked ? "all" : "");
    } catch {
      // As above.
    }
  });
}

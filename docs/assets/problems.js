// Cards of practice problems. Under /book/ the judge serves the book: a title becomes a link to the
// problem, and its state is shown. Anywhere else a card stays as it is, with the command to type.
(async () => {
  const cards = document.querySelectorAll("[data-problem]");
  const end = location.pathname.indexOf("/book/");
  if (!cards.length || end < 0) return;
  const base = location.pathname.slice(0, end);
  const zh = document.documentElement.lang.startsWith("zh");
  const words = zh
    ? { draft: "有草稿", tried: "试过", accepted: "已通过" }
    : { draft: "draft", tried: "tried", accepted: "accepted" };
  let states;
  try {
    const answer = await fetch(`${base}/api/problems`);
    if (!answer.ok) return;
    const chapters = (await answer.json()).chapters;
    states = new Map(chapters.flatMap((one) => one.problems).map((one) => [one.id, one.state]));
  } catch {
    return;
  }
  for (const card of cards) {
    const id = card.dataset.problem;
    if (!states.has(id)) continue;
    const title = card.querySelector(".problem-title");
    const link = document.createElement("a");
    link.href = `${base}/p/${id}`;
    link.append(...title.childNodes);
    title.append(link);
    const state = states.get(id);
    const badge = card.querySelector(".problem-state");
    if (words[state]) {
      badge.textContent = words[state];
      badge.dataset.state = state;
      badge.hidden = false;
    }
  }
})();

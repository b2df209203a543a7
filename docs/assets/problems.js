// Under /book/ the judge serves the book: its list of problems joins the navigation, a card's title
// becomes a link to the problem, and its state is shown. Anywhere else nothing changes, and a card
// keeps the command to type.
(async () => {
  const end = location.pathname.indexOf("/book/");
  if (end < 0) return;
  const base = location.pathname.slice(0, end);
  const zh = document.documentElement.lang.startsWith("zh");
  const words = zh
    ? { list: "练习题", draft: "有草稿", tried: "试过", accepted: "已通过" }
    : { list: "Problems", draft: "draft", tried: "tried", accepted: "accepted" };
  const cards = document.querySelectorAll("[data-problem]");
  let states;
  try {
    const answer = await fetch(`${base}/api/problems`);
    if (!answer.ok) return;
    const chapters = (await answer.json()).chapters;
    states = new Map(chapters.flatMap((one) => one.problems).map((one) => [one.id, one.state]));
  } catch {
    return;
  }
  const item = document.createElement("li");
  item.className = "md-nav__item";
  const home = document.createElement("a");
  home.className = "md-nav__link";
  home.href = `${base}/`;
  home.textContent = words.list;
  item.append(home);
  document.querySelector(".md-nav--primary > .md-nav__list")?.append(item);
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

// Under /book/ the judge serves the book, and the two are one: the header leads to the problems,
// chapters that pass `verify` have a mark, a card has its problem's state, and cards and links lead
// to the problem itself. Anywhere else nothing changes.
(async () => {
  const end = location.pathname.indexOf("/book/");
  if (end < 0) return;
  const base = location.pathname.slice(0, end);
  const zh = document.documentElement.lang.startsWith("zh");
  const words = zh
    ? { book: "书", list: "题目", site: "站点", verified: "verify 通过了", draft: "有草稿", tried: "试过", accepted: "已通过" }
    : { book: "Book", list: "Problems", site: "Site", verified: "passes verify", draft: "draft", tried: "tried", accepted: "accepted" };
  let all;
  try {
    const answer = await fetch(`${base}/api/problems`);
    if (!answer.ok) return;
    all = await answer.json();
    localStorage.setItem("judge.language", zh ? "zh" : "en");
  } catch {
    if (!all) return; // no judge; without storage it asks the browser for the language
  }
  const make = (tag, more, ...children) => {
    const made = Object.assign(document.createElement(tag), more);
    made.append(...children);
    return made;
  };

  const count = `${words.list} ${all.done}/${all.total}`;
  const here = make("a", { href: document.querySelector(".md-logo").href }, words.book);
  here.setAttribute("aria-current", "true");
  const nav = make("nav", { className: "site-nav" }, here, make("a", { href: `${base}/` }, count));
  nav.setAttribute("aria-label", words.site);
  document.querySelector(".md-header__title").after(nav);
  const item = make("a", { className: "md-nav__link", href: `${base}/` }, count);
  document
    .querySelector(".md-nav--primary > .md-nav__list")
    ?.append(make("li", { className: "md-nav__item" }, item));

  for (const link of document.querySelectorAll(".md-nav--primary a.md-nav__link")) {
    const chapter = /\/ch(\d\d)_[^/]*\/$/.exec(link.pathname);
    if (!chapter || !all.verified.includes(Number(chapter[1]))) continue;
    const name = { title: words.verified, ariaLabel: words.verified };
    link.append(make("span", { className: "verified", role: "img", ...name }, "✓"));
  }

  const states = new Map(all.chapters.flatMap((one) => one.problems).map((one) => [one.id, one.state]));
  for (const card of document.querySelectorAll("[data-problem]")) {
    const id = card.dataset.problem;
    if (!states.has(id)) continue;
    const title = card.querySelector(".problem-title");
    title.append(make("a", { href: `${base}/p/${id}` }, ...title.childNodes));
    const state = states.get(id);
    const badge = card.querySelector(".problem-state");
    if (words[state]) {
      badge.textContent = words[state];
      badge.dataset.state = state;
      badge.hidden = false;
    }
  }

  for (const link of document.querySelectorAll('a[href*="practice/problems/"]')) {
    const problem = /practice\/problems\/([^/]+)\/statement/.exec(link.href);
    if (problem) link.href = `${base}/p/${problem[1]}`;
  }
})();

// One page for the list at / and for a problem at /p/ID; the address decides which.
import { ApiError, call } from "./api.js";
import { el, fill } from "./dom.js";
import { announce, header, notice, watchConnection } from "./frame.js";
import { TEXTS } from "./texts.js";

const main = document.getElementById("main");

async function show() {
  const list = call("GET", "/api/problems");
  const match = /^\/p\/([^/]+)\/?$/.exec(location.pathname);
  if (match) {
    const { problemPage } = await import("./problem.js");
    const [problem, all] = await Promise.all([call("GET", `/api/problems/${match[1]}`), list]);
    frame(all);
    await problemPage(main, problem, all);
  } else if (location.pathname !== "/") {
    frame(await list);
    throw new ApiError(404, TEXTS.noPage);
  } else {
    const { listPage } = await import("./list.js");
    const all = await list;
    frame(all);
    listPage(main, all);
  }
}

function frame(all) {
  header({ book: all.book });
  if (all.notice) notice("level", el("span", {}, all.notice));
}

function failed(error) {
  const known = error instanceof ApiError;
  if (!known) console.error(error);
  const text = known ? error.text : TEXTS.failed(error);
  const again = el("button", { type: "button", onclick: () => location.reload() }, TEXTS.retry);
  fill(
    main,
    el(
      "div",
      { class: "alone" },
      el("h1", {}, known && error.status === 404 ? TEXTS.notFound : TEXTS.brand),
      el("p", {}, text),
      el("p", {}, again, " ", el("a", { href: "/" }, TEXTS.toList)),
    ),
  );
  announce(text);
}

// Brought back whole by the back button, the page would show how things stood when it was left.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});
header();
watchConnection(() => call("GET", "/api/status").catch(() => {}));
show().catch(failed);

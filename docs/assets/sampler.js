/* The live sampler: temperature, top-k and top-p on a recorded distribution, in the order in which
   minisgl/engine/sample.py applies them. Scores of the likeliest tokens come one by one, those of
   the others in groups of nearly equal ones: [how many, score]. */

(() => {
  "use strict";

  const ALL = "∞";
  const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;

  function start(figure) {
    const { scores, groups, pieces, words } = JSON.parse(figure.dataset.sampler);
    const knobs = Object.fromEntries(
      [...figure.querySelectorAll("[data-knob]")].map((knob) => [knob.dataset.knob, knob]),
    );
    const part = (key) => figure.querySelector(`[data-key="${key}"]`);
    const rows = [...figure.querySelectorAll('[data-key^="bar"]')];
    const widest = Number(rows[0].getAttribute("width"));
    const button = figure.querySelector("[data-draw]");
    const drawn = figure.querySelector("[data-drawn]");
    let kept = [];

    function show() {
      const temperature = Number(knobs.temperature.value);
      const counts = knobs.top_k.dataset.counts.split(" ");
      const top_k = counts[knobs.top_k.value];
      const top_p = Number(knobs.top_p.value);
      const texts = { temperature: temperature.toFixed(1), top_k, top_p: top_p.toFixed(2) };
      for (const [name, text] of Object.entries(texts)) knobs[name].nextSibling.textContent = text;

      const weigh = (score) => (temperature ? Math.exp(score / temperature) : Number(score === 0));
      const entries = [...scores.map((score) => [1, score]), ...groups];
      const weighed = entries.map(([count, score]) => [count, weigh(score)]);
      const total = weighed.reduce((sum, [count, weight]) => sum + count * weight, 0);
      kept = first(weighed, top_k === ALL ? Infinity : Number(top_k));
      if (!temperature) kept = kept.slice(0, 1);
      if (top_p < 1) kept = reach(kept, top_p * mass(kept));

      const left = mass(kept);
      rows.forEach((bar, index) => {
        const weight = weighed[index][1];
        const inside = index < kept.length;
        bar.setAttribute("width", Math.max(1, (widest * weight) / weighed[0][1]));
        bar.setAttribute("class", inside ? "r1 solid" : "free");
        part(`share${index}`).textContent = inside ? percent(weight / left) : "–";
      });
      const more = kept.slice(rows.length);
      part("more").textContent = words.more
        .replace("{kept}", number(more).toLocaleString("en"))
        .replace("{share}", percent(mass(more) / left));
      part("sum").textContent = words.sum
        .replace("{kept}", number(kept).toLocaleString("en"))
        .replace("{share}", percent(left / total));
      figure.dataset.kept = number(kept);
    }

    function draw() {
      let rest = Math.random() * mass(kept);
      const index = kept.findIndex(([count, weight]) => (rest -= count * weight) < 0);
      const piece = pieces[Math.max(index, 0)] ?? words.other;
      drawn.textContent = `${drawn.textContent} ${piece.trim() || "␣"}`.split(" ").slice(-8).join(" ");
    }

    for (const knob of Object.values(knobs)) knob.addEventListener("input", show);
    button.addEventListener("click", draw);
    figure.querySelector(".fig-controls").hidden = false;
    figure.classList.add("fig-on");
    show();
  }

  const mass = (entries) => entries.reduce((sum, [count, weight]) => sum + count * weight, 0);
  const number = (entries) => entries.reduce((sum, [count]) => sum + count, 0);

  function first(entries, limit) {
    const found = [];
    for (const [count, weight] of entries) {
      if (limit <= 0) break;
      found.push([Math.min(count, limit), weight]);
      limit -= count;
    }
    return found;
  }

  function reach(entries, wanted) {
    const found = [];
    for (const [count, weight] of entries) {
      if (wanted <= 0) break;
      found.push([Math.min(count, Math.ceil(wanted / weight)), weight]);
      wanted -= count * weight;
    }
    return found;
  }

  function startAll() {
    for (const figure of document.querySelectorAll("[data-sampler]:not(.fig-on)")) start(figure);
  }

  if (window.document$) window.document$.subscribe(startAll);
  else if (document.readyState === "loading") addEventListener("DOMContentLoaded", startAll);
  else startAll();
})();

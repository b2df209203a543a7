/* Live figures: the frames of a recorded run, one at a time, by button, slider or key.

   Every frame is in the page already, drawn by tools/figures.py; without this script the first and
   the last are shown. Shapes that two frames have in common (data-key) move from one to the other.
   No inline code and no network, so the strictest content security policy lets it run. */

(() => {
  "use strict";

  const PAUSE = 1600; // ms between frames that play by themselves
  const MOVE = 350; // ms that a shape takes to its new place
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

  function start(figure) {
    const frames = [...figure.querySelectorAll(".fig-frame")];
    const controls = figure.querySelector(".fig-controls");
    const slider = controls.querySelector("input");
    const output = controls.querySelector("output");
    const buttons = Object.fromEntries(
      [...controls.querySelectorAll("button")].map((button) => [button.dataset.step, button]),
    );
    let now = 0;
    let timer = 0;

    function show(wanted) {
      const next = Math.min(Math.max(wanted, 0), frames.length - 1);
      const before = frames[now];
      frames.forEach((frame, index) => {
        frame.hidden = index !== next;
      });
      if (next !== now && !calm.matches) move(before, frames[next]);
      now = next;
      slider.value = String(now + 1);
      output.textContent = `${now + 1} / ${frames.length}`;
      const held = document.activeElement;
      buttons.back.disabled = now === 0;
      buttons.next.disabled = now === frames.length - 1;
      // A button that is switched off would take the keys with it.
      if (held.disabled && controls.contains(held)) figure.focus({ preventScroll: true });
      if (now === frames.length - 1) stop();
    }

    function stop() {
      window.clearInterval(timer);
      timer = 0;
      buttons.play.setAttribute("aria-pressed", "false");
    }

    function play() {
      if (timer) {
        stop();
        return;
      }
      if (now === frames.length - 1) show(0);
      timer = window.setInterval(() => {
        if (figure.isConnected) show(now + 1);
        else stop();
      }, PAUSE);
      buttons.play.setAttribute("aria-pressed", "true");
    }

    function go(step) {
      if (step === "play") {
        play();
        return;
      }
      stop();
      show({ first: 0, back: now - 1, next: now + 1, last: frames.length - 1 }[step]);
    }

    const keys = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last", " ": "play" };
    figure.tabIndex = 0;
    figure.addEventListener("keydown", (event) => {
      // Space on a button presses it, arrows on the slider move it.
      if (event.target !== figure && (event.key === " " || event.target === slider)) return;
      if (event.altKey || event.ctrlKey || event.metaKey || !(event.key in keys)) return;
      event.preventDefault();
      go(keys[event.key]);
    });
    controls.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) go(button.dataset.step);
    });
    slider.addEventListener("input", () => {
      stop();
      show(Number(slider.value) - 1);
    });

    figure.querySelector(".fig-frames").setAttribute("aria-live", "polite");
    figure.classList.add("fig-on");
    controls.hidden = false;
    figure.querySelector(".fig-hint").hidden = false;
    show(0);
  }

  function move(from, to) {
    const before = new Map(
      [...from.querySelectorAll("[data-key]")].map((shape) => [shape.dataset.key, shape]),
    );
    for (const shape of to.querySelectorAll("[data-key]")) {
      const old = before.get(shape.dataset.key);
      if (!old) {
        shape.animate([{ opacity: 0 }, { opacity: 1 }], MOVE);
        continue;
      }
      const dx = place(old, "x") - place(shape, "x");
      const dy = place(old, "y") - place(shape, "y");
      if (!dx && !dy) continue;
      shape.animate(
        [{ transform: `translate(${dx}px, ${dy}px)` }, { transform: "none" }],
        { duration: MOVE, easing: "ease-out" },
      );
    }
  }

  function place(shape, axis) {
    return Number(shape.getAttribute(axis) ?? shape.getAttribute(`c${axis}`) ?? 0);
  }

  function startAll() {
    for (const figure of document.querySelectorAll(".fig[data-live]:not(.fig-on)")) start(figure);
  }

  // Material's instant navigation exchanges the page and says so here.
  if (window.document$) window.document$.subscribe(startAll);
  else if (document.readyState === "loading") addEventListener("DOMContentLoaded", startAll);
  else startAll();
})();

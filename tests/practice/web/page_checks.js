// What an accessibility checker would say of the page as it is drawn now: a list of complaints.
() => {
  const complaints = [];
  const say = (what, element) => {
    const text = (element.textContent ?? "").trim().slice(0, 30);
    complaints.push(`${what}: <${element.localName} class="${element.className}"> ${text}`);
  };

  function* everything(root) {
    for (const element of root.querySelectorAll("*")) {
      yield element;
      if (element.shadowRoot) yield* everything(element.shadowRoot);
    }
  }
  const all = [...everything(document)];
  const parentOf = (node) =>
    node.assignedSlot ?? node.parentElement ?? node.getRootNode().host ?? null;
  const isHidden = (element) => !element.checkVisibility({ visibilityProperty: true });
  const isUnseen = (element) => element.closest(".unseen, .skip:not(:focus)") !== null;

  // Names
  const named = (element) => {
    const by = element.getAttribute("aria-labelledby");
    if (by) return by.split(" ").every((id) => element.getRootNode().getElementById(id));
    if (element.getAttribute("aria-label")?.trim()) return true;
    if (element.labels?.length || element.getAttribute("title")) return true;
    const copy = element.cloneNode(true);
    for (const part of copy.querySelectorAll("[aria-hidden=true]")) part.remove();
    return copy.textContent.trim() !== "";
  };
  const operable =
    "a[href], button, input, select, textarea, summary, [role=tab], [role=separator], [role=textbox], dialog, nav, progress, [role=tablist], section";
  for (const element of all) {
    if (isHidden(element) || element.closest("[aria-hidden=true]")) continue;
    if (element.matches(operable) && !named(element)) say("no name", element);
    if (element.matches("button, a.button, .card, [role=tab]") && !isUnseen(element)) {
      const box = element.getBoundingClientRect();
      if (Math.min(box.width, box.height) < 24)
        say(`target of ${box.width} x ${box.height}`, element);
    }
    if (element.matches("[aria-controls]")) {
      const id = element.getAttribute("aria-controls");
      if (!document.getElementById(id)) say(`controls the missing ${id}`, element);
    }
    if (element.matches("img:not([alt])")) say("no alt", element);
    if (element.matches("[tabindex]") && element.tabIndex > 0) say("tabindex above 0", element);
  }

  // Structure
  const root = document.documentElement;
  if (!/^(zh-CN|en)$/.test(root.lang)) complaints.push(`lang is ${root.lang}`);
  if (!document.title) complaints.push("no title");
  if (document.querySelectorAll("main").length !== 1) complaints.push("not one main");
  const headings = all.filter((one) => /^h[1-6]$/.test(one.localName) && !isHidden(one));
  if (headings.filter((one) => one.localName === "h1").length !== 1) complaints.push("not one h1");
  let level = 0;
  for (const heading of headings) {
    const own = Number(heading.localName[1]);
    if (own > level + 1) say(`h${own} after h${level}`, heading);
    level = own;
  }
  const ids = all.map((one) => one.id).filter(Boolean);
  for (const id of new Set(ids)) {
    if (ids.filter((other) => other === id).length > 1) complaints.push(`id ${id} twice`);
  }

  // Contrast of every text that is drawn
  const parse = (text) => {
    const numbers = text.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    return text.startsWith("color(srgb")
      ? [...numbers.slice(0, 3).map((one) => one * 255), numbers[3] ?? 1]
      : [...numbers.slice(0, 3), numbers[3] ?? 1];
  };
  const over = (top, below) =>
    top.slice(0, 3).map((one, i) => one * top[3] + below[i] * (1 - top[3]));
  const ground = (element) => {
    const layers = [];
    for (let node = element; node; node = parentOf(node)) {
      const colour = parse(getComputedStyle(node).backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((one) => {
      const part = one / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  for (const element of all) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (
      !own ||
      isHidden(element) ||
      isUnseen(element) ||
      element.closest("noscript, script, style, [aria-disabled=true]")
    )
      continue;
    const style = getComputedStyle(element);
    const below = ground(element);
    let opacity = 1;
    for (let node = element; node; node = parentOf(node))
      opacity *= Number(getComputedStyle(node).opacity);
    const text = parse(style.color);
    text[3] *= opacity;
    const [a, b] = [light(over(text, below)), light(below)].sort((one, other) => other - one);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) say(`contrast ${ratio.toFixed(2)}`, element);
  }
  return [...new Set(complaints)];
}

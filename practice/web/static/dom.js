// Elements from plain values. Text always becomes a text node: nothing here parses HTML.
import { isText, say } from "./language.js";

/**
 * An element. In `options` a function is a listener (`onclick`), true or false switches an
 * attribute, {zh, en} follows the language, anything else is an attribute's value. A child is a
 * node, a string, {zh, en}, a list of these, or null.
 */
export function el(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) set(element, name, value);
  return fill(element, ...children);
}

/** Replace what is inside an element; children as in `el`. */
export function fill(element, ...children) {
  const inside = children.flat(Infinity).filter((child) => child !== null && child !== undefined);
  if (inside.length === 1 && isText(inside[0])) say(element, inside[0]);
  else element.replaceChildren(...inside.map((child) => (isText(child) ? span(child) : child)));
  return element;
}

/** A small drawing from one of the paths in ICONS; it is not read aloud. */
export function icon(path) {
  const make = (tag) => document.createElementNS("http://www.w3.org/2000/svg", tag);
  const [svg, line] = [make("svg"), make("path")];
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  svg.classList.add("icon");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}

/** The drawings the page uses, each in a square of 16 units. */
export const ICONS = {
  accepted: "M3 8.5l3.2 3.2L13 5",
  tried: "M4.5 4.5l7 7M11.5 4.5l-7 7",
  draft: "M3 13l.7-3 7-7 2.3 2.3-7 7zM9.5 4.2l2.3 2.3",
  new: "M8 3.5a4.5 4.5 0 1 0 .01 0",
  sun: "M8 5.2a2.8 2.8 0 1 0 .01 0M8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.2 1.2M11.8 11.8L13 13M13 3l-1.2 1.2M4.2 11.8L3 13",
  moon: "M13.2 9.8A5.6 5.6 0 0 1 6.2 2.8 5.6 5.6 0 1 0 13.2 9.8z",
  left: "M10 3L5 8l5 5",
  right: "M6 3l5 5-5 5",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
};

function set(element, name, value) {
  if (typeof value === "function") element.addEventListener(name.slice(2), value);
  else if (typeof value === "boolean") element.toggleAttribute(name, value);
  else if (isText(value)) say(element, value, name);
  else if (value !== null && value !== undefined) element.setAttribute(name, value);
}

function span(text) {
  const element = document.createElement("span");
  say(element, text);
  return element;
}

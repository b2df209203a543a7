// Chinese or English: every text of the page is {zh, en}, and `say` keeps it in the right one.
import { keep } from "./keep.js";

const KEY = "judge.language";
const said = new WeakMap(); // element -> Map(attribute name, or "" for the text -> {zh, en})
const listeners = new Set();

/** "zh" or "en". */
export function language() {
  return document.documentElement.lang.startsWith("zh") ? "zh" : "en";
}

/** The text in the reader's language; a plain string is the same in both. */
export function pick(text) {
  return typeof text === "string" ? text : text[language()];
}

/** Whether a value is a text in both languages. */
export function isText(value) {
  return typeof value === "object" && value !== null && "zh" in value && "en" in value;
}

/** Put a text into an element, or into one of its attributes, now and after every switch. */
export function say(element, text, attribute = "") {
  if (!said.has(element)) said.set(element, new Map());
  said.get(element).set(attribute, text);
  element.dataset.said = "";
  write(element, text, attribute);
}

/** Call `listener` after every switch of the language; returns how to stop that. */
export function onLanguage(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Switch the page to "zh" or "en" and remember it. */
export function setLanguage(next) {
  document.documentElement.lang = next === "zh" ? "zh-CN" : "en";
  keep(KEY, next);
  for (const element of document.querySelectorAll("[data-said]")) {
    for (const [attribute, text] of said.get(element) ?? []) write(element, text, attribute);
  }
  for (const listener of listeners) listener();
}

/** A moment as both languages write it; `at` in seconds since 1970, or ISO text. */
export function moment(at) {
  const date = new Date(typeof at === "number" ? at * 1000 : at);
  const today = date.toDateString() === new Date().toDateString();
  const style = today ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" };
  const write = (locale) => new Intl.DateTimeFormat(locale, style).format(date);
  return { zh: write("zh-CN"), en: write("en-GB") };
}

function write(element, text, attribute) {
  if (attribute) element.setAttribute(attribute, pick(text));
  else element.textContent = pick(text);
}

// The browser's own store. Where it is full or switched off, the page works and forgets.

/** The text kept under `key`, or null. */
export function kept(key, store = () => localStorage) {
  try {
    return store().getItem(key);
  } catch {
    return null;
  }
}

/** Keep a text, or drop it when it is null. */
export function keep(key, text, store = () => localStorage) {
  try {
    if (text === null) store().removeItem(key);
    else store().setItem(key, text);
  } catch {
    // Whoever needs to know asks `kept`.
  }
}

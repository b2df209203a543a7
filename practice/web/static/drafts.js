// What the reader has written, kept: in the browser at once, on the server a moment later.
//
// A text leaves the browser's own store only when the server has it, so a closed lid, a killed
// server or a full disk costs nothing. Where two tabs write, the newer text is the draft, and the
// older tab is told and stops saving until its reader has chosen.
import { call, of, onConnection } from "./api.js";
import { keep, kept } from "./keep.js";
import { moment } from "./language.js";
import { TEXTS } from "./texts.js";

const PAUSE_MS = 600;
const RETRY_MS = [1000, 2000, 4000, 8000, 15000];
const KEEPALIVE_BYTES = 60_000; // browsers refuse more than 64 KiB in one keepalive request

/**
 * Keeps one problem's text. `show(text, kind)` shows the state ("saved", "saving", "kept" or
 * "lost"), `other({source, text})` is called when there is another version than ours.
 */
export class Draft {
  constructor(id, source, { show, other }) {
    this.id = id;
    this.source = source;
    this.saved = source; // what the server has, as far as we know
    this.show = show;
    this.other = other;
    this.paused = false;
    this.saving = false;
    this.failures = 0;
    this.key = `judge.draft.${id}`;
    this.channel = new BroadcastChannel(this.key);
    this.channel.onmessage = ({ data }) =>
      this.#heard(data.source, TEXTS.otherTab(moment(data.at)));
    window.addEventListener("pagehide", () => this.#leave());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.#compare();
    });
    onConnection((gone) => {
      if (!gone && this.dirty) this.#later(0);
    });
  }

  /** Whether the server lacks what is in the editor. */
  get dirty() {
    return this.source !== this.saved;
  }

  /** The version that never reached the server, or null: {source, at in seconds}. */
  unsaved() {
    try {
      const found = JSON.parse(kept(this.key));
      return typeof found?.source === "string" && Number.isFinite(found.at) ? found : null;
    } catch {
      return null; // not of this page
    }
  }

  /** The editor's text is now this one. */
  change(source) {
    if (source === this.source) return;
    this.source = source;
    this.#keep();
    if (this.paused) return;
    if (!this.dirty) {
      clearTimeout(this.timer);
      this.#settled(source); // typed back to what the server has
      return;
    }
    this.show(TEXTS.saving, "saving");
    this.#later(PAUSE_MS);
  }

  /** Save now what is not saved yet; true when the server has it. */
  async save() {
    clearTimeout(this.timer);
    if (!this.dirty || this.paused) return !this.dirty;
    const source = this.source;
    this.show(TEXTS.saving, "saving");
    this.saving = true;
    try {
      await call("PUT", of(this.id, "/draft"), { source });
    } catch (error) {
      this.#failed(error);
      return false;
    } finally {
      this.saving = false;
    }
    this.#settled(source);
    this.channel.postMessage({ source, at: Date.now() / 1000 });
    if (this.dirty) this.#later(PAUSE_MS);
    return true;
  }

  /** The server forgets the draft, which is `source` again. */
  async drop(source) {
    clearTimeout(this.timer);
    await call("DELETE", of(this.id, "/draft"));
    this.source = source;
    this.#settled(source);
    this.channel.postMessage({ source, at: Date.now() / 1000 });
  }

  /** The reader has chosen between two versions; his choice is the draft from now on. */
  choose(source) {
    this.paused = false;
    this.source = source;
    if (this.dirty) this.#keep();
    else this.forget();
    return this.save();
  }

  #settled(source) {
    this.saved = source;
    this.failures = 0;
    if (this.unsaved()?.source === source) this.forget();
    this.show(TEXTS.saved(moment(Date.now() / 1000)), "saved");
  }

  #failed(error) {
    this.show(this.unsaved()?.source === this.source ? TEXTS.kept : TEXTS.lost, "kept");
    if (error.status && error.status < 500 && error.status !== 429) {
      this.show(error.text, "lost"); // saying it again would not help
      return;
    }
    const wait = RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)];
    this.failures += 1;
    this.#later(wait);
  }

  #later(ms) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.save(), ms);
  }

  // Full or switched off, the server is the only place, and the state line says so.
  #keep() {
    keep(this.key, JSON.stringify({ source: this.source, at: Date.now() / 1000 }));
  }

  /** Drop the version that never reached the server. */
  forget() {
    keep(this.key, null);
  }

  // The page goes away: whatever is missing is sent along without waiting for an answer.
  #leave() {
    if (!this.dirty || this.paused || this.source.length * 3 > KEEPALIVE_BYTES) return;
    call("PUT", of(this.id, "/draft"), { source: this.source }, { keepalive: true }).catch(
      () => {},
    );
  }

  #heard(source, text) {
    this.saved = source;
    if (source === this.source) return;
    clearTimeout(this.timer);
    this.paused = true;
    this.other({ source, text });
  }

  // Another browser, or an editor, may have written while this tab was hidden.
  async #compare() {
    if (this.paused || this.saving) return;
    const before = this.saved;
    try {
      const { draft, file } = await call("GET", of(this.id));
      const found = draft?.source ?? file ?? before;
      const ours = this.paused || this.saving || this.saved !== before;
      if (found === before || ours) return;
      this.#heard(found, draft ? TEXTS.otherTab(moment(draft.at)) : TEXTS.otherFile);
    } catch {
      // Gone for now: the notice is up already.
    }
  }
}

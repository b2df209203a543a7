// The server's JSON. A server that does not answer is a state of the page, not a crash.
import { TEXTS } from "./texts.js";

const listeners = new Set();
let gone = false;

/** What went wrong in both languages; `status` is 0 when the server did not answer at all. */
export class ApiError extends Error {
  constructor(status, text) {
    super(text.en);
    this.status = status;
    this.text = text;
  }
}

/** Call `listener(gone)` when the server stops answering and when it is back. */
export function onConnection(listener) {
  listeners.add(listener);
}

/** Say that the server answered or did not; other ways of asking (events) report here too. */
export function connection(answers) {
  if (gone === !answers) return;
  gone = !answers;
  for (const listener of listeners) listener(gone);
}

/** Ask the server; the parsed answer, or null when there is none. Throws ApiError. */
export async function call(method, path, body = undefined, { keepalive = false } = {}) {
  const options = { method, keepalive, headers: {}, cache: "no-store" };
  if (method !== "GET") {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body ?? {});
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    connection(false);
    throw new ApiError(0, TEXTS.gone);
  }
  connection(true);
  if (response.status === 204) return null;
  let data = null;
  try {
    data = await response.json();
  } catch {
    // Not JSON: the status alone has to say it.
  }
  if (response.ok) return data;
  throw new ApiError(response.status, data?.error?.en ? data.error : TEXTS.status(response.status));
}

/** Path of a problem's resource. */
export function of(id, rest = "") {
  return `/api/problems/${encodeURIComponent(id)}${rest}`;
}

// One run or submission, from the click to the verdict, over an event stream.
import { call, connection, of } from "./api.js";
import { keep, kept } from "./keep.js";
import { TEXTS } from "./texts.js";

const AGAIN_MS = 1500;

/**
 * Send the source ("run" or "submit") and follow it. `on.state(text)` hears of every step,
 * `on.verdict(answer)` of the end; a refusal is thrown as ApiError.
 */
export async function start(id, kind, source, on) {
  on.state(TEXTS.sending);
  const { job } = await call("POST", of(id, `/${kind}`), { source });
  remember(id, job);
  follow(id, job, on);
}

/** Follow a job that was on its way when this tab was reloaded, if there is one. */
export function resume(id, on) {
  const job = remembered(id);
  if (job) follow(id, job, on);
  return job !== null;
}

function follow(id, job, on) {
  const stream = new EventSource(`/api/jobs/${encodeURIComponent(job)}/events`);
  const hear = (name, act) => {
    stream.addEventListener(name, (event) => {
      connection(true);
      act(JSON.parse(event.data || "{}"));
    });
  };
  hear("queued", ({ position }) => on.state(placeInQueue(position)));
  hear("judging", () => on.state(TEXTS.judging));
  hear("verdict", (answer) => {
    stream.close();
    remember(id, null);
    on.verdict(answer);
  });
  stream.onerror = () => {
    stream.close(); // the browser's own retry cannot tell a restart from a job that is unknown
    on.state(TEXTS.reconnecting);
    setTimeout(() => again(id, job, on), AGAIN_MS);
  };
}

// null: another server of this machine has the job, and its queue is not ours to see.
function placeInQueue(position) {
  if (position === null) return TEXTS.queuedSomewhere;
  return position > 0 ? TEXTS.queued(position) : TEXTS.queuedNext;
}

async function again(id, job, on) {
  try {
    await call("GET", `/api/jobs/${encodeURIComponent(job)}`);
  } catch (error) {
    if (error.status === 0 || error.status >= 500) {
      setTimeout(() => again(id, job, on), AGAIN_MS);
      return;
    }
    remember(id, null);
    on.lost(error.status === 404 ? TEXTS.jobLost : error.text);
    return;
  }
  follow(id, job, on);
}

// For this tab only: another one has its own jobs.
function remember(id, job) {
  keep(`judge.job.${id}`, job, () => sessionStorage);
}

function remembered(id) {
  return kept(`judge.job.${id}`, () => sessionStorage);
}

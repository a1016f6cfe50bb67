// Follows changes by server-sent events. Without a stream it polls the daemon every few seconds. The page shows which of
// the two is in use, or that the connection is lost.

import { openEvents } from "./api.js";
import { readEvents } from "./events.js";
import { readJson } from "./json.js";

const SILENCE = 40_000; // milliseconds without an event after which a stream is dead; one comes every 15 seconds
const ASK_EVERY = 4_000;
const ASK_EVERY_UNSEEN = 30_000;
const HOLD_UNSEEN = 60_000; // then a hidden tab closes its stream: browsers allow only six connections per server
const FIRST_PAUSE = 1_000; // before a stream is opened again; doubled each time it does not last
const LONGEST_PAUSE = 30_000;
const STEADY = 10_000; // a stream that was open for this long has lasted

export class Live {
  /** `onRequest(request)`: a request has changed. `refresh()`: read everything again. `onState(state)`: live, asking or
   * lost. `onTrouble(text)`: the daemon's open problems, or nothing. */
  constructor({ onRequest, refresh, onState, onTrouble }) {
    Object.assign(this, { onRequest, refresh, onState, onTrouble });
    this.onVisible = () => this.look();
    this.pause = FIRST_PAUSE;
    this.openAfter = 0;
    this.lastEvent = ""; // id of the event after which a new stream continues
    this.isLost = false;
  }

  start() {
    document.addEventListener("visibilitychange", this.onVisible);
    this.timer = setInterval(() => this.watch(), 1_000);
    this.asked = performance.now();
    this.open();
  }

  stop() {
    document.removeEventListener("visibilitychange", this.onVisible);
    clearInterval(this.timer);
    this.close();
    this.onState = () => {}; // ignore calls that are still in progress
  }

  open() {
    this.close();
    this.heard = this.opened = performance.now();
    this.stream = new AbortController();
    this.follow(this.stream);
  }

  /** Follow a stream until the daemon stops, the connection breaks or the stream is closed here. */
  async follow(stream) {
    try {
      const answer = await openEvents(this.lastEvent, stream.signal);
      this.hear(stream, true);
      for await (const event of readEvents(answer.body)) {
        if (stream !== this.stream) return;
        this.hear(stream);
        this.take(event);
      }
    } catch {
      // refused, broken or closed: handled like a normal end
    }
    this.lose(stream);
  }

  take({ event, data, id }) {
    if (id) this.lastEvent = id;
    try {
      if (event === "request") this.onRequest(readJson(data));
      if (event === "ping") this.onTrouble(readJson(data).trouble);
    } catch (error) {
      reportError(error); // an error of the page, not of the stream, which continues
    }
  }

  close() {
    this.stream?.abort();
    this.stream = null;
    this.isLive = false;
  }

  hear(stream, afresh = false) {
    if (stream !== this.stream) return;
    this.heard = performance.now();
    if (this.isLive) return;
    this.isLive = true;
    this.onState("live");
    if (afresh) this.refresh().catch(() => {}); // read what happened before the stream was open
  }

  lose(stream) {
    if (stream !== this.stream) return;
    const now = performance.now();
    this.pause = now - this.opened > STEADY ? FIRST_PAUSE : Math.min(this.pause * 2, LONGEST_PAUSE);
    this.openAfter = now + this.pause;
    this.close();
    this.ask();
  }

  /** Once a second: check the stream; without one, open it or poll when it is time. */
  watch() {
    const now = performance.now();
    const unseen = document.hidden && now - this.hiddenSince > HOLD_UNSEEN;
    if (this.stream && (unseen || now - this.heard > SILENCE)) {
      this.close();
      this.asked = now - ASK_EVERY;
    }
    if (unseen) this.lastEvent = ""; // when somebody looks again, everything is read at once, not event by event
    else if (!this.stream && now >= this.openAfter) this.open();
    if (this.isLive || now - this.asked < (unseen ? ASK_EVERY_UNSEEN : ASK_EVERY)) return;
    this.ask();
  }

  async ask() {
    this.asked = performance.now();
    const wasLost = this.isLost;
    try {
      await this.refresh();
      this.isLost = false;
    } catch {
      this.isLost = true;
    }
    if (wasLost && !this.isLost) this.openAfter = 0; // the daemon is back: open the stream at once
    if (!this.isLive) this.onState(this.isLost ? "lost" : "asking");
  }

  look() {
    if (document.hidden) {
      this.hiddenSince = performance.now();
      return;
    }
    this.refresh().catch(() => {}); // the machine may have slept
    if (!this.stream) this.open();
  }
}

// Changes as they happen, by server-sent events. While there is no stream the daemon is asked every few seconds, and
// the page says which of the two it is, or that nothing comes through at all.

import { openEvents } from "./api.js";
import { readEvents } from "./events.js";
import { readJson } from "./json.js";

const SILENCE = 40_000; // milliseconds without an event, of which one should come every 15 seconds
const ASK_EVERY = 4_000;
const ASK_EVERY_UNSEEN = 30_000;
const HOLD_UNSEEN = 60_000; // a tab that nobody looks at gives its connection back: browsers allow only six a server
const FIRST_PAUSE = 1_000; // before a stream that ended is opened again; twice as long each time it does not last
const LONGEST_PAUSE = 30_000;
const STEADY = 10_000; // a stream that was there for so long has lasted

export class Live {
  /** `onRequest(request)`: it has changed. `refresh()`: read everything again. `onState(state)`: live, asking, lost.
   * `onTrouble(text)`: what does not work in the daemon, or nothing. */
  constructor({ onRequest, refresh, onState, onTrouble }) {
    Object.assign(this, { onRequest, refresh, onState, onTrouble });
    this.onVisible = () => this.look();
    this.pause = FIRST_PAUSE;
    this.openAfter = 0;
    this.lastEvent = ""; // where a stream that broke goes on
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
    this.onState = () => {}; // what is still under way says nothing any more
  }

  open() {
    this.close();
    this.heard = this.opened = performance.now();
    this.stream = new AbortController();
    this.follow(this.stream);
  }

  /** Until the daemon stops, the connection breaks or the stream is closed here. */
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
      // refused, broken or closed: what to do is the same as when it ends
    }
    this.lose(stream);
  }

  take({ event, data, id }) {
    if (id) this.lastEvent = id;
    try {
      if (event === "request") this.onRequest(readJson(data));
      if (event === "ping") this.onTrouble(readJson(data).trouble);
    } catch (error) {
      reportError(error); // of the page, not of the stream, which goes on
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
    if (afresh) this.refresh().catch(() => {}); // what happened before the stream was there
  }

  lose(stream) {
    if (stream !== this.stream) return;
    const now = performance.now();
    this.pause = now - this.opened > STEADY ? FIRST_PAUSE : Math.min(this.pause * 2, LONGEST_PAUSE);
    this.openAfter = now + this.pause;
    this.close();
    this.ask();
  }

  /** Once a second: is the stream still there, and if not, is it time to open it or to ask? */
  watch() {
    const now = performance.now();
    const unseen = document.hidden && now - this.hiddenSince > HOLD_UNSEEN;
    if (this.stream && (unseen || now - this.heard > SILENCE)) {
      this.close();
      this.asked = now - ASK_EVERY;
    }
    if (unseen) this.lastEvent = ""; // everything is read again when somebody looks, not told one by one
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
    if (wasLost && !this.isLost) this.openAfter = 0; // the daemon is there again: no need for patience
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

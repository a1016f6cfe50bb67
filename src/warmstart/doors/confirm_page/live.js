// Changes as they happen, by server-sent events. While there is no stream the daemon is asked every few seconds, and
// the page says which of the two it is, or that nothing comes through at all.

import { readJson } from "./json.js";

const SILENCE = 40_000; // milliseconds without an event, of which one should come every 15 seconds
const ASK_EVERY = 4_000;
const ASK_EVERY_UNSEEN = 30_000;
const HOLD_UNSEEN = 60_000; // a tab that nobody looks at gives its connection back: browsers allow only six a server

export class Live {
  /** `onRequest(request)`: it has changed. `refresh()`: read everything again. `onState(state)`: live, asking, lost. */
  constructor({ onRequest, refresh, onState }) {
    Object.assign(this, { onRequest, refresh, onState });
    this.onVisible = () => this.look();
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
  }

  open() {
    this.close();
    this.heard = performance.now();
    const stream = new EventSource("/events");
    this.stream = stream;
    stream.addEventListener("open", () => this.hear(stream, true));
    stream.addEventListener("ping", () => this.hear(stream));
    stream.addEventListener("request", (event) => {
      this.hear(stream);
      this.onRequest(readJson(event.data));
    });
    stream.addEventListener("error", () => this.lose(stream));
  }

  close() {
    this.stream?.close();
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
    this.isLive = false;
    if (stream.readyState === EventSource.CLOSED) this.close(); // refused: it does not try again by itself
    this.ask();
  }

  /** Once a second: is the stream still there, and if not, is it time to ask? */
  watch() {
    const now = performance.now();
    const unseen = document.hidden && now - this.hiddenSince > HOLD_UNSEEN;
    if (this.stream && (unseen || now - this.heard > SILENCE)) {
      this.close();
      this.asked = now - ASK_EVERY;
    }
    if (this.isLive || now - this.asked < (unseen ? ASK_EVERY_UNSEEN : ASK_EVERY)) return;
    this.ask();
    if (!this.stream && !unseen) this.open();
  }

  async ask() {
    this.asked = performance.now();
    try {
      await this.refresh();
      if (!this.isLive) this.onState("asking");
    } catch {
      if (!this.isLive) this.onState("lost");
    }
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

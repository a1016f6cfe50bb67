// The known requests. Answers may overtake each other, so a request is never replaced by an earlier state of it.

import { findRequest, listRequests } from "./api.js";
import { secondsLeft, startClock } from "./clock.js";

const PAGE = 200; // requests per answer, at most
const MOST_PAGES = 5;
const LATELY = 20; // decided requests in the list

export class Requests extends EventTarget {
  constructor() {
    super();
    this.known = new Map();
    this.moreWaiting = false;
    this.isLoaded = false;
    this.late = new Map(); // id -> when a request past its deadline was last read
  }

  get(id) {
    return this.known.get(id);
  }

  /** Return the waiting requests, the one with the least time first. */
  waiting() {
    const waiting = [...this.known.values()].filter(({ status }) => status === "pending");
    return waiting.sort((a, b) => a.until - b.until || (a.id < b.id ? -1 : 1));
  }

  /** Return the decided requests, latest first. */
  decided() {
    const decided = [...this.known.values()].filter(({ status }) => status !== "pending");
    const at = ({ decision, created }) => decision?.at ?? created;
    return decided.sort((a, b) => (at(a) < at(b) ? 1 : at(a) > at(b) ? -1 : 0)).slice(0, LATELY);
  }

  /** Read all requests that the list shows. */
  async refresh() {
    const [pages, lately] = await Promise.all([this.#readWaiting(), listRequests({ limit: LATELY })]);
    const waiting = new Set(pages.requests.map(({ id }) => id));
    const ended = this.waiting().filter(({ id }) => !waiting.has(id));
    this.moreWaiting = pages.more;
    this.isLoaded = true;
    for (const request of [...lately.requests, ...pages.requests]) this.#take(request);
    this.#notify();
    if (!pages.more) for (const { id } of ended.slice(0, LATELY)) this.read(id).catch(() => {});
  }

  async #readWaiting() {
    const requests = [];
    let before = null;
    for (let page = 0; page < MOST_PAGES; page++) {
      const wanted = { status: "pending", limit: PAGE };
      if (before) wanted.before = before;
      const answer = await listRequests(wanted);
      requests.push(...answer.requests);
      before = answer.next;
      if (!before) break;
    }
    return { requests, more: Boolean(before) };
  }

  async read(id) {
    this.put(await findRequest(id));
    return this.get(id);
  }

  put(request) {
    const isNew = this.#take(request);
    this.#notify();
    if (isNew && request.status === "pending") {
      this.dispatchEvent(new CustomEvent("arrived", { detail: this.get(request.id) }));
    }
  }

  forget() {
    this.known.clear();
    this.isLoaded = false;
  }

  /** Read requests past their deadline again: the daemon decides whether they are expired, not this machine. */
  checkLate() {
    const now = performance.now();
    for (const request of this.waiting()) {
      if (secondsLeft(request) > 0) return;
      if (now - (this.late.get(request.id) ?? -Infinity) < 2_000) continue;
      this.late.set(request.id, now);
      this.read(request.id).catch(() => {});
    }
  }

  #take(request) {
    const before = this.known.get(request.id);
    if (before && measureProgress(before) > measureProgress(request)) return false;
    this.known.set(request.id, startClock(request));
    return !before;
  }

  #notify() {
    this.dispatchEvent(new Event("change"));
  }
}

/** Return a number that only grows over a request's life. */
function measureProgress(request) {
  return (request.status === "pending" ? 0 : 1_000) + (request.executed ? 1_000 : 0) + (request.approvals?.length ?? 0);
}

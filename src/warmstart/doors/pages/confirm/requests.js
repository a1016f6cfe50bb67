// What is known of the requests. Answers may overtake each other, so a request never goes back to what it was before.

import { findRequest, listRequests } from "./api.js";
import { secondsLeft, startClock } from "./clock.js";

const PAGE = 200; // requests an answer, at most
const MOST_PAGES = 5;
const LATELY = 20; // decided ones that are listed

export class Requests extends EventTarget {
  constructor() {
    super();
    this.known = new Map();
    this.moreWaiting = false;
    this.isLoaded = false;
    this.late = new Map(); // when a request whose time is up was last asked about
  }

  get(id) {
    return this.known.get(id);
  }

  /** Those that wait, the one with the least time first. */
  waiting() {
    const found = [...this.known.values()].filter((one) => one.status === "pending");
    return found.sort((a, b) => a.until - b.until || (a.id < b.id ? -1 : 1));
  }

  /** Those that are decided, the latest first. */
  decided() {
    const found = [...this.known.values()].filter((one) => one.status !== "pending");
    const at = (one) => one.decision?.at ?? one.created;
    return found.sort((a, b) => (at(a) < at(b) ? 1 : at(a) > at(b) ? -1 : 0)).slice(0, LATELY);
  }

  /** Read everything that the list shows. */
  async refresh() {
    const [pages, lately] = await Promise.all([this.#readWaiting(), listRequests({ limit: LATELY })]);
    const waiting = new Set(pages.requests.map((one) => one.id));
    const before = this.waiting().filter((one) => !waiting.has(one.id));
    this.moreWaiting = pages.more;
    this.isLoaded = true;
    for (const one of [...lately.requests, ...pages.requests]) this.#take(one);
    this.#tell();
    if (!pages.more) for (const one of before.slice(0, LATELY)) this.read(one.id).catch(() => {});
  }

  async #readWaiting() {
    const found = [];
    let before = null;
    for (let page = 0; page < MOST_PAGES; page++) {
      const wanted = { status: "pending", limit: PAGE };
      if (before) wanted.before = before;
      const answer = await listRequests(wanted);
      found.push(...answer.requests);
      before = answer.next;
      if (!before) break;
    }
    return { requests: found, more: Boolean(before) };
  }

  async read(id) {
    this.put(await findRequest(id));
    return this.get(id);
  }

  put(request) {
    const isNew = this.#take(request);
    this.#tell();
    if (isNew && request.status === "pending") {
      this.dispatchEvent(new CustomEvent("arrived", { detail: this.get(request.id) }));
    }
  }

  forget() {
    this.known.clear();
    this.isLoaded = false;
  }

  /** Ask about those whose time is up: the daemon says whether they are expired, not this machine. */
  checkLate() {
    const now = performance.now();
    for (const one of this.waiting()) {
      if (secondsLeft(one) > 0) return;
      if (now - (this.late.get(one.id) ?? -Infinity) < 2_000) continue;
      this.late.set(one.id, now);
      this.read(one.id).catch(() => {});
    }
  }

  #take(request) {
    const before = this.known.get(request.id);
    if (before && howFar(before) > howFar(request)) return false;
    this.known.set(request.id, startClock(request));
    return !before;
  }

  #tell() {
    this.dispatchEvent(new Event("change"));
  }
}

function howFar(request) {
  return (request.status === "pending" ? 0 : 1_000) + (request.executed ? 1_000 : 0) + (request.approvals?.length ?? 0);
}

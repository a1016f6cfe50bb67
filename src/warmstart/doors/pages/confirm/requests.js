// The known requests. Answers may overtake each other, so a request is never replaced by an earlier state of it.

import { findRequest, listRequests } from "./api.js";
import { secondsLeft, startClock } from "./clock.js";

const PAGE = 50; // requests per answer
const LATELY = 20; // decided requests in the list

export class Requests extends EventTarget {
  constructor() {
    super();
    this.known = new Map();
    this.moreWaiting = false;
    this.total = 0; // waiting requests in all, as the daemon counts them
    this.pages = 1; // how many the person has asked for
    this.filter = { requester: "", highRisk: false };
    this.isLoaded = false;
    this.late = new Map(); // id -> when a request past its deadline was last read
  }

  get(id) {
    return this.known.get(id);
  }

  /** Show only the requests of one requester, or only those of high risk. */
  choose(filter) {
    this.filter = { ...this.filter, ...filter };
    this.pages = 1;
    this.#notify();
    return this.refresh();
  }

  /** Read the next page of waiting requests. */
  readMore() {
    this.pages += 1;
    return this.refresh();
  }

  /** Return who is waiting for something, by name. */
  requesters() {
    const names = [...this.known.values()].filter(({ status }) => status === "pending").map(({ requester }) => requester);
    if (this.filter.requester) names.push(this.filter.requester);
    return [...new Set(names)].sort();
  }

  #isWanted({ requester, high_risk: highRisk }) {
    return (!this.filter.requester || requester === this.filter.requester) && (!this.filter.highRisk || highRisk);
  }

  /** Return the waiting requests that are wanted, the one with the least time first. */
  waiting() {
    const waiting = [...this.known.values()].filter((request) => request.status === "pending" && this.#isWanted(request));
    const due = ({ deadline }) => Date.parse(deadline); // `until` differs a little with each answer
    return waiting.sort((a, b) => due(a) - due(b) || (a.id < b.id ? -1 : 1));
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
    this.total = pages.total;
    this.isLoaded = true;
    for (const request of [...lately.requests, ...pages.requests]) this.#take(request);
    this.#notify();
    if (!pages.more) for (const { id } of ended.slice(0, LATELY)) this.read(id).catch(() => {});
  }

  async #readWaiting() {
    const requests = [];
    let before = null;
    let total = 0;
    for (let page = 0; page < this.pages; page++) {
      const wanted = { status: "pending", limit: PAGE };
      if (this.filter.requester) wanted.requester = this.filter.requester;
      if (this.filter.highRisk) wanted.high_risk = true;
      if (before) wanted.before = before;
      const answer = await listRequests(wanted);
      requests.push(...answer.requests);
      total = answer.waiting;
      before = answer.next;
      if (!before) break;
    }
    return { requests, more: Boolean(before), total };
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
    // Lists and events carry no details; those that are known stay, because they never change.
    const isPoorer = request.details_omitted && before && !before.details_omitted;
    const { details, details_text, details_omitted, masks, findings } = before ?? {};
    const whole = isPoorer ? { ...request, details, details_text, details_omitted, masks, findings } : request;
    this.known.set(request.id, startClock(whole));
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

// The list: waiting requests, most urgent first, and recently decided ones. It only links to requests; nothing can be
// decided in it, so a list that moves under the pointer does no harm.

import { secondsLeft, writeLeft, writeTime } from "./clock.js";
import { DenyAll } from "./denying.js";
import { make, shorten, showText } from "./text.js";

export const STATUS = {
  pending: "Waiting",
  approved: "Approved",
  auto_approved: "Approved by rule",
  denied: "Denied",
  expired: "Expired",
  withdrawn: "Withdrawn",
};
const URGENT = 60; // seconds
const FEW = 4; // fewer waiting requests need no filter

export class Listing {
  constructor(requests) {
    this.requests = requests;
    this.title = make("h1", { tabindex: "-1" });
    this.note = make("p", { class: "note" });
    this.who = make("select", { id: "requester" });
    this.risk = make("input", { id: "risk-only", type: "checkbox" });
    this.denyAll = make("button", { type: "button", class: "deny", hidden: true });
    this.tools = make(
      "div",
      { class: "tools", hidden: true },
      make("label", { for: "requester" }, "Asked by "),
      this.who,
      make("label", { for: "risk-only" }, this.risk, " high risk only"),
      this.denyAll,
    );
    this.more = make("button", { type: "button", class: "plain", hidden: true }, "Show more");
    this.who.addEventListener("change", () => this.requests.choose({ requester: this.who.value }).catch(() => {}));
    this.risk.addEventListener("change", () => this.requests.choose({ highRisk: this.risk.checked }).catch(() => {}));
    this.more.addEventListener("click", () => this.requests.readMore().catch(() => {}));
    this.denyAll.addEventListener("click", () => new DenyAll(this.who.value, () => this.requests.refresh()).open());
    this.waiting = make("ul", { class: "cards" });
    this.decidedTitle = make("h2", {}, "Recently decided");
    this.decided = make("ul", { class: "rows" });
    this.element = make(
      "section",
      { class: "listing", "aria-label": "Requests" },
      this.title,
      this.note,
      this.tools,
      this.waiting,
      this.more,
      this.decidedTitle,
      this.decided,
    );
  }

  update(openId) {
    const waiting = this.requests.waiting();
    this.title.textContent = writeTitle(waiting.length, this.requests);
    this.note.textContent = writeNote(waiting.length, this.requests);
    this.note.hidden = !this.note.textContent;
    this.#updateTools(waiting.length);
    syncItems(this.waiting, waiting, (request, item) => fillCard(request, item, request.id === openId));
    const decided = this.requests.decided();
    syncItems(this.decided, decided, (request, item) => fillRow(request, item, request.id === openId));
    this.decidedTitle.hidden = decided.length === 0;
    this.tick();
  }

  /** Offer filters once there is something to choose from. */
  #updateTools(count) {
    const { filter, moreWaiting } = this.requests;
    const names = this.requests.requesters();
    const isUsed = Boolean(filter.requester) || filter.highRisk;
    this.tools.hidden = !isUsed && count < FEW && !moreWaiting;
    this.more.hidden = !moreWaiting;
    const shown = [...this.who.options].slice(1).map(({ value }) => value);
    if (shown.join("\n") !== names.join("\n") || this.who.options.length === 0) {
      const options = names.map((name) => make("option", { value: name }, shorten(name, 40)));
      this.who.replaceChildren(make("option", { value: "" }, "everyone"), ...options);
    }
    this.who.value = filter.requester;
    this.risk.checked = filter.highRisk;
    this.denyAll.hidden = !filter.requester || count === 0;
    this.denyAll.textContent = `Deny all from ${shorten(filter.requester, 40)} …`;
  }

  tick() {
    for (const item of this.waiting.children) {
      const request = this.requests.get(item.dataset.id);
      if (request) showLeft(item.querySelector(".left"), request);
    }
  }

  focus(id) {
    const item = id && this.element.querySelector(`li[data-id="${CSS.escape(id)}"] a`);
    (item || this.title).focus();
  }
}

function writeTitle(count, requests) {
  if (!requests.isLoaded) return "Loading …";
  if (count === 0) return "Nothing is waiting";
  const { requester, highRisk } = requests.filter;
  if (requests.moreWaiting && !requester && !highRisk) return `${requests.total} requests are waiting`;
  if (requests.moreWaiting) return `More than ${count} of these requests are waiting`;
  return count === 1 ? "1 request is waiting" : `${count} requests are waiting`;
}

function writeNote(count, requests) {
  if (!requests.isLoaded) return "";
  if (count === 0) return "New requests appear here by themselves. You can leave this page open.";
  return requests.moreWaiting ? `The latest ${count} are shown; “Show more” reads on.` : "";
}

/** Make a list's items match `requests`, in that order; items that stay keep their element and so the focus. */
function syncItems(list, requests, fill) {
  const items = new Map([...list.children].map((item) => [item.dataset.id, item]));
  requests.forEach((request, place) => {
    const item = items.get(request.id) ?? make("li", { "data-id": request.id });
    items.delete(request.id);
    fill(request, item);
    if (list.children[place] !== item) list.insertBefore(item, list.children[place] ?? null);
  });
  for (const gone of items.values()) gone.remove();
}

function fillCard(request, item, isOpen) {
  fillLink(request, item, isOpen, () => [
    make(
      "span",
      { class: "first" },
      showText(request.action, { class: "action" }),
      make("span", { class: "left" }),
    ),
    request.high_risk ? make("span", { class: "tag risk" }, "High risk") : null,
    showText(request.description, { class: "said" }),
    make("span", { class: "by" }, "asked by ", showText(request.requester), describeVotes(request)),
  ]);
  item.firstChild.classList.toggle("risky", request.high_risk);
}

function fillRow(request, item, isOpen) {
  fillLink(request, item, isOpen, () => [
    make("span", { class: `tag ${request.status}` }, STATUS[request.status]),
    showText(request.action, { class: "action" }),
    make("span", { class: "by" }, describeEnd(request)),
  ]);
}

/** Fill an item's link. The link element stays while its request changes, because it may have the focus. */
function fillLink(request, item, isOpen, content) {
  const link = item.firstChild ?? item.appendChild(make("a"));
  if (item.shown !== request) {
    link.href = `#/request/${request.id}`;
    link.replaceChildren(...content().filter(Boolean));
    item.shown = request;
  }
  if (isOpen) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
}

function describeVotes(request) {
  return request.quorum > 1 ? ` · ${request.approvals.length} of ${request.quorum} approvals` : "";
}

/** Show who decided a request and when; for a waiting one, when it was made. */
export function describeEnd({ status, created, decision }) {
  if (!decision) return writeTime(created);
  const isByPerson = status === "approved" || status === "denied";
  return make("span", {}, isByPerson ? [showText(decision.by), ", "] : null, writeTime(decision.at));
}

/** Show the time left in an element of the class `left`. */
export function showLeft(element, request) {
  const seconds = secondsLeft(request);
  const text = seconds > 0 ? writeLeft(seconds) : "time is up";
  if (element.textContent !== text) element.textContent = text;
  element.classList.toggle("urgent", seconds <= URGENT);
}

// One request in full: action, arguments, requester, time left, and the decision.

import { listRequests } from "./api.js";
import { showArguments } from "./arguments.js";
import { describeLeft, secondsLeft, writeTime } from "./clock.js";
import { describeEnd, showLeft, STATUS } from "./listing.js";
import { make, showText } from "./text.js";

const EARLIER = 8; // earlier requests for the same action that are shown
const OUTCOME = {
  approved: "Approved",
  auto_approved: "Approved without asking, by the whitelist or the policy",
  denied: "Denied",
  expired: "Expired: nobody decided in time",
  withdrawn: "Withdrawn by the agent",
};

export class Showing {
  /** `onDecide(request, verdict)` is called when a person wants to decide. */
  constructor(id, { requests, session, onDecide }) {
    Object.assign(this, { id, requests, session, onDecide });
    this.heading = make("h1", { tabindex: "-1" });
    this.back = make("a", { class: "back", href: "#/" }, "← All requests");
    this.parts = make("div");
    this.outcome = make("div", { class: "outcome", "aria-live": "polite" });
    this.arguments = make("section", { "aria-label": "Arguments" });
    this.decision = make("section", { class: "decision", "aria-label": "Decision" });
    this.earlier = make("section", { "aria-label": "Earlier requests for this action" });
    this.element = make(
      "section",
      { class: "showing", "aria-label": "Request" },
      this.back,
      this.outcome,
      this.heading,
      this.parts,
      this.arguments,
      this.decision,
      this.earlier,
    );
  }

  update() {
    const request = this.requests.get(this.id);
    if (!request || request === this.shown) return;
    const before = this.shown;
    this.shown = request;
    const isWhole = !request.details_omitted;
    const wasWhole = Boolean(before) && !before.details_omitted;
    if (!before) {
      this.heading.replaceChildren(showText(request.action));
      this.#loadEarlier();
    }
    if (isWhole !== wasWhole || !before) {
      const shown = isWhole ? showArguments(request) : [make("p", { class: "note" }, "Loading …")];
      this.arguments.replaceChildren(make("h2", {}, "Exact arguments"), ...shown);
    }
    this.parts.replaceChildren(...describe(request, this.before));
    this.outcome.replaceChildren(...showOutcome(request));
    if (isWhole !== wasWhole || !before || before.status !== request.status || hasVoted(before, this.session) !== hasVoted(request, this.session)) {
      this.decision.replaceChildren(...this.#offerDecision(request));
      if (before && before.status !== request.status) this.#loadEarlier();
    }
    this.tick();
  }

  /** Show that there is no such request, or that it cannot be read now. */
  showMissing(text) {
    if (this.shown) return;
    this.heading.textContent = "Not found";
    this.parts.replaceChildren(make("p", { class: "note" }, text));
  }

  tick() {
    if (!this.shown) return;
    const left = this.parts.querySelector(".left");
    if (!left) return;
    const seconds = secondsLeft(this.shown);
    showLeft(left, this.shown);
    const bar = this.parts.querySelector("progress");
    bar.value = seconds;
    bar.setAttribute("aria-label", describeLeft(seconds));
    for (const button of this.decision.querySelectorAll("button")) button.disabled = seconds === 0;
  }

  #offerDecision(request) {
    if (request.status !== "pending" || request.details_omitted) return []; // nobody decides what is not shown
    if (request.requester === this.session.subject) {
      return [make("p", { class: "remark" }, "You asked for this yourself, so someone else must decide.")];
    }
    const voted = hasVoted(request, this.session);
    const deny = make("button", { type: "button", class: "deny" }, "Deny …");
    deny.addEventListener("click", () => this.onDecide(this.shown, "deny"));
    const approve = make("button", { type: "button", class: "approve" }, "Approve …");
    approve.addEventListener("click", () => this.onDecide(this.shown, "approve"));
    return [
      voted ? make("p", { class: "remark" }, `You have approved this. ${request.missing} more must approve it.`) : null,
      make("div", { class: "buttons" }, deny, voted ? null : approve),
    ].filter(Boolean);
  }

  async #loadEarlier() {
    try {
      const answer = await listRequests({ action: this.shown.action, limit: EARLIER + 1 });
      const others = answer.requests.filter(({ id }) => id !== this.id).slice(0, EARLIER);
      this.earlier.replaceChildren(...listEarlier(others, this.shown, Boolean(answer.next)));
      this.before = summarise(others, this.shown, Boolean(answer.next));
      this.parts.replaceChildren(...describe(this.shown, this.before));
      this.tick();
    } catch {
      this.earlier.replaceChildren(make("h2", {}, "Earlier"), make("p", { class: "note" }, "The history could not be read."));
    }
  }
}

function hasVoted(request, session) {
  return request.approvals.some(({ by }) => by === session.subject);
}

function describe(request, before) {
  return [
    request.high_risk ? make("p", {}, make("span", { class: "tag risk" }, "High risk")) : null,
    make("p", { class: "description" }, showText(request.description)),
    request.status === "pending" ? showTime(request) : null,
    make("dl", { class: "facts" }, ...listFacts(request, before).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
  ].filter(Boolean);
}

function showTime(request) {
  const bar = make("progress", { max: String(request.timeout_seconds), value: String(secondsLeft(request)) });
  return make("div", { class: "time" }, make("p", { role: "timer" }, make("span", { class: "left" }), " left to decide"), bar);
}

function listFacts(request, before) {
  const facts = [["Asked by", showRequester(request)]];
  if (request.session_key) facts.push(["Session", showText(request.session_key)]);
  facts.push(["Asked at", writeTime(request.created, { exact: true })]);
  if (before) facts.push(["Before", before]);
  if (request.quorum > 1) facts.push(["Approvals", showVotes(request)]);
  for (const notice of request.notifications) if (notice.state !== "sent" && notice.error) facts.push(describeFailure(notice));
  return facts;
}

/** Describe a failed delivery, even while it is retried: the end of the retries may be too late. */
function describeFailure({ channel, state, attempts, error }) {
  const tried = attempts ? ` (tried ${attempts === 1 ? "once" : `${attempts} times`})` : "";
  const text = make("span", { class: "bad" }, showText(channel), ": ", showText(error), tried);
  return [state === "queued" ? "Not notified yet" : "Not notified", text];
}

function showRequester(request) {
  const claimed = request.claimed_requester;
  if (!claimed || claimed === request.requester) return showText(request.requester);
  return make("span", {}, showText(request.requester), make("span", { class: "claim" }, " (calls itself ", showText(claimed), ")"));
}

function showVotes(request) {
  const show = ({ by, at, reason }, more) => make("li", {}, showText(by), ` at ${writeTime(at)}${more}`, reason ? ": " : "", reason ? showText(reason) : "");
  const votes = [...request.approvals.map((vote) => show(vote, "")), ...request.lapsed.map((vote) => show(vote, ", no longer counted"))];
  return make("div", {}, `${request.approvals.length} of ${request.quorum}`, votes.length ? make("ul", { class: "votes" }, ...votes) : "");
}

function showOutcome(request) {
  if (request.status === "pending") return [];
  const { decision } = request;
  const line = make("p", {}, make("strong", { class: request.status }, OUTCOME[request.status]));
  const isByPerson = request.status === "approved" || request.status === "denied";
  if (decision && isByPerson) line.append(" by ", showText(decision.by));
  if (decision) line.append(`, ${writeTime(decision.at, { exact: true })}`);
  const parts = [line];
  if (decision?.reason && request.status !== "expired") parts.push(make("p", { class: "reason" }, showText(decision.reason)));
  if (["approved", "auto_approved"].includes(request.status)) {
    const used = request.executed ? `The agent used the approval at ${writeTime(request.executed, { exact: true })}.` : "The agent has not used the approval yet.";
    parts.push(make("p", { class: "note" }, used));
  }
  return [make("div", { class: `banner ${request.status}` }, ...parts)];
}

/** Summarise the decisions on earlier requests for the same action in one line. */
function summarise(others, shown, more) {
  if (others.length === 0) return "the first request for this action";
  const counts = new Map();
  for (const { status } of others) counts.set(status, (counts.get(status) ?? 0) + 1);
  const summary = [...counts].map(([status, count]) => `${count} ${STATUS[status].toLowerCase()}`).join(", ");
  const same = others.filter(({ digest }) => digest === shown.digest).length;
  return `${more ? "recently " : ""}${summary}${same ? `; ${same} with exactly the same arguments` : ""}`;
}

function listEarlier(others, shown, more) {
  const title = make("h2", {}, "Earlier requests for ", showText(shown.action));
  if (others.length === 0) return [title, make("p", { class: "note" }, "This is the first one.")];
  const items = others.map((other) =>
    make(
      "li",
      {},
      make(
        "a",
        { href: `#/request/${other.id}` },
        make("span", { class: `tag ${other.status}` }, STATUS[other.status]),
        showText(other.description, { class: "said" }),
        make("span", { class: "by" }, other.digest === shown.digest ? "exactly the same · " : "", describeEnd(other)),
      ),
    ),
  );
  return [title, make("ul", { class: "rows" }, ...items), more ? make("p", { class: "note" }, `The latest ${others.length} are shown.`) : ""].filter(Boolean);
}

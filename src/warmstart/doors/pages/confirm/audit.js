// The audit: every change, latest first, with its signature.

import { readAudit, Refusal } from "./api.js";
import { writeTime } from "./clock.js";
import { make, shorten, showText } from "./text.js";

const PAGE = 100; // entries at a time
const EVENTS = {
  submitted: "Asked",
  approved: "Approved",
  vote: "Voted",
  denied: "Denied",
  expired: "Expired",
  withdrawn: "Withdrawn",
  auto_approved: "Approved by rule",
  executed: "Used",
  login: "Logged in",
  logout: "Logged out",
  login_link_created: "Login link made",
  token_created: "Token made",
  token_revoked: "Token revoked",
  passkey_added: "Device set up",
  passkey_vouched: "Device trusted",
  passkey_removed: "Device removed",
  whitelisted: "Allowed in advance",
  whitelist_removed: "No longer allowed",
  started: "Daemon started",
  stopped: "Daemon stopped",
  notified: "Notified",
};
const TONES = { approved: "approved", auto_approved: "approved", vote: "approved", denied: "denied", decision_refused: "denied" };
const KINDS = {
  "": "Everything",
  "approved vote denied expired withdrawn auto_approved decision_refused": "Decisions",
  "login logout login_link_created token_created token_revoked passkey_added passkey_vouched passkey_removed sessions_ended": "Access",
  "auth_failed access_refused login_failed decision_refused execution_refused passkey_refused rate_limited more_failures": "Refusals",
};

export class Audit {
  constructor() {
    this.entries = [];
    this.heading = make("h1", { tabindex: "-1" }, "Audit");
    this.kind = make("select", { id: "kind" }, ...Object.entries(KINDS).map(([value, text]) => make("option", { value }, text)));
    this.note = make("p", { class: "note", role: "status" }, "Loading …");
    this.list = make("ol", { class: "rows audit-rows" });
    this.more = make("button", { type: "button", class: "quiet", hidden: true }, "Earlier entries");
    this.kind.addEventListener("change", () => this.#show());
    this.more.addEventListener("click", () => this.#load());
    this.element = make(
      "section",
      { class: "view audit", "aria-label": "Audit" },
      make("a", { class: "back shown", href: "#/" }, "← All requests"),
      this.heading,
      make(
        "p",
        { class: "note" },
        "Every entry holds the hash of the one before. Whether all of it holds, and every signature, is checked on the daemon's machine: ",
        make("code", {}, "warmstart confirm verify"),
      ),
      make("p", { class: "filter" }, make("label", { for: "kind" }, "Show"), this.kind),
      this.note,
      this.list,
      this.more,
    );
    this.#load();
  }

  /** Load the latest entries, then earlier ones. */
  async #load() {
    this.more.disabled = true;
    try {
      const first = this.entries.at(-1)?.sequence;
      const wanted = first ? { since: Math.max(0, first - 1 - PAGE), limit: Math.min(PAGE, first - 1) } : { limit: PAGE };
      const { entries } = await readAudit(wanted);
      this.entries.push(...entries.reverse());
      this.#show();
    } catch (error) {
      const refused = error instanceof Refusal && error.status === 403;
      this.note.textContent = refused ? "This login may not read the audit." : "The audit could not be read. Try again.";
      this.note.hidden = false;
    } finally {
      this.more.disabled = false;
    }
  }

  #show() {
    const wanted = this.kind.value.split(" ");
    const shown = this.kind.value ? this.entries.filter(({ event }) => wanted.includes(event)) : this.entries;
    this.list.replaceChildren(...shown.map(showEntry));
    this.note.textContent = shown.length ? "" : "None of the loaded entries is of this kind.";
    this.note.hidden = shown.length > 0;
    this.more.hidden = (this.entries.at(-1)?.sequence ?? 1) <= 1;
  }
}

function showEntry(entry) {
  const { event, details } = entry;
  const title = make("span", { class: `tag ${TONES[event] ?? ""}` }, EVENTS[event] ?? event.replaceAll("_", " "));
  const what = entry.action ? showText(entry.action, { class: "action" }) : showText(describe(details));
  return make(
    "li",
    {},
    make("span", { class: "number" }, String(entry.sequence)),
    make(
      "div",
      { class: "entry" },
      make(
        "p",
        {},
        title,
        " ",
        entry.request ? make("a", { href: `#/request/${entry.request}` }, what) : what,
        details.proof ? make("span", { class: "tag signed", title: "Signed by a passkey; `verify` checks it" }, "Signed") : null,
      ),
      details.reason ? make("p", { class: "note" }, showText(shorten(details.reason, 200))) : null,
      make("p", { class: "by" }, showText(entry.actor), details.claimed ? [" (calls itself ", showText(details.claimed), ")"] : null, ` · ${writeTime(entry.at, { exact: true })}`),
      make("details", {}, make("summary", {}, "All fields"), make("pre", {}, showText(JSON.stringify(entry, null, 2)))),
    ),
  );
}

function describe(details) {
  return shorten([details.name, details.subject, details.scopes, details.channel, details.address, details.path].filter(Boolean).join(" · "), 120);
}

// The dialog before a decision. The button that approves never has the initial focus: a held Enter, a double click or a
// click meant for something else does not approve.

import { decide, findRequest, NoAnswer, Refusal } from "./api.js";
import { showBriefly } from "./arguments.js";
import { describeLeft, secondsLeft, writeTime } from "./clock.js";
import { describeDeviceError, signApproval } from "./passkeys.js";
import { make, shorten, showText } from "./text.js";

const LONGEST_REASON = 1_000;
const PAUSE = 500; // milliseconds before the dialog accepts an approval, so that a double click does not approve

const AGAIN = [
  ["", "only this once"],
  ["1/15", "now, and 1 more in 15 minutes"],
  ["5/60", "now, and 5 more in an hour"],
  ["20/480", "now, and 20 more in 8 hours"],
];

const WORDS = {
  approve: { title: "Approve", button: "Approve", busy: "Approving …", reason: "Note (optional, kept in the log)" },
  deny: { title: "Deny", button: "Deny", busy: "Denying …", reason: "Reason (sent to the agent)" },
};

export class Question {
  /** `onAnswer(request)` gets the decided request; `onTrouble(text)` gets the reason why it was not decided. */
  constructor(request, verdict, { onAnswer, onTrouble, onClose }) {
    Object.assign(this, { request, verdict, onAnswer, onTrouble, onClose });
    this.words = WORDS[verdict];
    this.mustType = verdict === "approve" && request.high_risk;
    this.opened = performance.now();
    this.isSending = false;
    this.#build();
  }

  #build() {
    this.left = make("span", { class: "left" });
    this.problem = make("p", { class: "problem", role: "alert", hidden: true });
    this.reason = make("textarea", { id: "reason", rows: "2", maxlength: String(LONGEST_REASON) });
    this.cancel = make("button", { type: "button", class: "plain" }, "Cancel");
    this.yes = make("button", { type: "submit", class: this.verdict }, this.words.button);
    const form = make(
      "form",
      { class: "question" },
      make("h2", { id: "question" }, `${this.words.title} `, showText(this.request.action), "?"),
      make("p", {}, showText(shorten(this.request.description, 240))),
      this.verdict === "approve" ? showBriefly(this.request) : null,
      make("p", { class: "note" }, ...this.#explain(), this.left),
      this.mustType ? this.#askName() : this.#askAgain(),
      make("label", { for: "reason" }, this.words.reason),
      this.reason,
      this.problem,
      make("div", { class: "buttons" }, this.cancel, this.yes),
    );
    this.dialog = make("dialog", { "aria-labelledby": "question" }, form);
    form.addEventListener("submit", (event) => this.#submit(event));
    form.addEventListener("input", () => this.tick());
    this.cancel.addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("close", () => this.#end());
  }

  #explain() {
    const who = showText(this.request.requester);
    if (this.verdict === "deny") return [who, " is refused. "];
    return [who, " may then do this once, with exactly the arguments shown. "];
  }

  /** Offer to allow exactly the same action again. High-risk actions and those of several deciders are asked each time. */
  #askAgain() {
    if (this.verdict !== "approve" || this.request.high_risk || this.request.quorum > 1) return null;
    this.again = make("select", { id: "again" }, ...AGAIN.map(([value, text]) => make("option", { value }, text)));
    const note = make("p", { class: "note", hidden: true }, "Exactly the same arguments, from the same agent and session, then run without asking.");
    this.again.addEventListener("change", () => (note.hidden = !this.again.value));
    return [make("label", { for: "again" }, "Allow it"), this.again, note];
  }

  #readAgain() {
    if (!this.again?.value) return null;
    const [times, minutes] = this.again.value.split("/").map(Number);
    return { times, minutes };
  }

  #askName() {
    this.typed = make("input", {
      id: "typed",
      type: "text",
      autocomplete: "off",
      autocapitalize: "none",
      autocorrect: "off",
      spellcheck: "false",
      enterkeyhint: "done",
    });
    const label = make("label", { for: "typed" }, "High risk. To approve, type ", make("code", {}, showText(this.request.action)));
    return make("div", { class: "typing" }, label, this.typed);
  }

  open() {
    document.body.append(this.dialog);
    this.dialog.showModal();
    (this.typed ?? (this.verdict === "deny" ? this.reason : this.cancel)).focus();
    this.tick();
    setTimeout(() => this.tick(), PAUSE);
  }

  close() {
    if (this.dialog.open) this.dialog.close();
  }

  tick() {
    const seconds = secondsLeft(this.request);
    const text = seconds > 0 ? describeLeft(seconds) : "Time is up.";
    if (this.left.textContent !== text) this.left.textContent = text;
    this.yes.disabled = !this.#isReady(seconds);
  }

  #isReady(seconds = secondsLeft(this.request)) {
    const isTyped = !this.mustType || this.typed.value.trim() === this.request.action;
    return !this.isSending && isTyped && seconds > 0 && performance.now() - this.opened >= PAUSE;
  }

  async #submit(event) {
    event.preventDefault();
    if (!this.#isReady()) return;
    this.isSending = true;
    this.yes.textContent = this.words.busy;
    this.tick();
    this.#showProblem("");
    const given = { reason: this.reason.value.trim(), digest: this.request.digest };
    if (this.mustType) given.typed_action = this.typed.value.trim();
    try {
      if (this.verdict === "approve") await this.#sign(given);
      this.onAnswer(await decide(this.request.id, this.verdict, given));
      this.dialog.close();
    } catch (error) {
      await this.#explainTrouble(error);
    } finally {
      this.isSending = false;
      this.yes.textContent = this.words.button;
      this.tick();
    }
  }

  /** Let the device sign the approval, if approvals are signed here. */
  async #sign(given) {
    const allow = this.#readAgain();
    if (allow) given.allow = allow;
    const passkey = await signApproval(this.request, allow);
    if (passkey) given.passkey = passkey;
  }

  /** Close the dialog after refusals that are final; leave it open after others, to try again. */
  async #explainTrouble(error) {
    if (error instanceof NoAnswer) {
      await this.#lookAfterSilence();
    } else if (describeDeviceError(error)) {
      this.#showProblem(`${describeDeviceError(error)} Nothing was decided.`);
    } else if (!(error instanceof Refusal)) {
      throw error;
    } else if (["already_decided", "already_voted", "expired", "changed"].includes(error.code) || error.status === 404) {
      this.dialog.close();
      this.onTrouble(describeRefusal(error), this.request.id);
    } else if (error.status === 401) {
      this.dialog.close();
      this.onTrouble("You were logged out. Nothing was decided.", this.request.id);
    } else {
      this.#showProblem(`${shorten(error.message, 300)}. Nothing was decided.`);
    }
  }

  /** The answer was lost: read the request before saying anything about it. */
  async #lookAfterSilence() {
    try {
      const now = await findRequest(this.request.id);
      if (now.status !== "pending") {
        this.onAnswer(now);
        this.dialog.close();
        return;
      }
      this.#showProblem("The daemon did not answer in time. The request is still waiting; try again.");
    } catch {
      this.#showProblem("No connection. Your decision may or may not have arrived; the page will show it.");
    }
  }

  #showProblem(text) {
    this.problem.textContent = text;
    this.problem.hidden = !text;
  }

  #end() {
    this.dialog.remove();
    this.onClose();
  }
}

function describeRefusal(error) {
  if (error.code === "changed") return "This is not the request that you were shown. Nothing was decided; look again.";
  if (error.code === "already_voted") return "You have already approved this; your second answer changed nothing.";
  if (error.status === 404) return "This request no longer exists.";
  const decided = describeDecided({ status: error.code === "expired" ? "expired" : "decided", decision: error.decision });
  return `${decided} Your answer changed nothing.`;
}

/** Say why a request can no longer be decided. */
export function describeDecided({ status, decision }) {
  if (status === "expired" || decision?.status === "expired") return "Too late: the request has expired.";
  if (!decision) return "Already decided.";
  if (decision.status === "withdrawn") return "The agent has withdrawn the request.";
  const what = decision.status === "denied" ? "denied" : "approved";
  return `Already ${what} by ${shorten(decision.by)} at ${writeTime(decision.at)}.`;
}

// The dialog that denies everything that one requester is waiting for. Denying is the safe answer, so no name is typed.

import { denyAll, Refusal } from "./api.js";
import { make, shorten, showText } from "./text.js";

const LONGEST_REASON = 1_000;

export class DenyAll {
  /** `onDone()` is called after the requests were denied. */
  constructor(requester, onDone) {
    Object.assign(this, { requester, onDone });
    this.problem = make("p", { class: "problem", role: "alert", hidden: true });
    this.reason = make("textarea", { id: "reason-for-all", rows: "2", maxlength: String(LONGEST_REASON) });
    this.cancel = make("button", { type: "button", class: "plain" }, "Cancel");
    this.yes = make("button", { type: "submit", class: "deny" }, "Deny all");
    const form = make(
      "form",
      { class: "question" },
      make("h2", { id: "deny-all" }, "Deny everything that ", showText(requester), " is waiting for?"),
      make("p", { class: "note" }, "Every waiting request of this requester is refused, also those that are not shown."),
      make("label", { for: "reason-for-all" }, "Reason (sent to the agent)"),
      this.reason,
      this.problem,
      make("div", { class: "buttons" }, this.cancel, this.yes),
    );
    this.dialog = make("dialog", { "aria-labelledby": "deny-all" }, form);
    form.addEventListener("submit", (event) => this.#submit(event));
    this.cancel.addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("close", () => this.dialog.remove());
  }

  open() {
    document.body.append(this.dialog);
    this.dialog.showModal();
    this.reason.focus();
  }

  async #submit(event) {
    event.preventDefault();
    this.yes.disabled = true;
    try {
      const { refused } = await denyAll(this.requester, this.reason.value.trim());
      await this.onDone();
      if (!refused) return this.dialog.close();
      this.#showProblem(`You may not decide ${refused} of them; the others were denied.`);
    } catch (error) {
      const why = error instanceof Refusal ? shorten(error.message, 300) : "The daemon did not answer; some may be denied";
      this.#showProblem(`${why}.`);
    } finally {
      this.yes.disabled = false;
    }
  }

  #showProblem(text) {
    this.problem.textContent = text;
    this.problem.hidden = !text;
  }
}

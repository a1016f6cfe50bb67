// The devices that sign approvals: set up this one, trust or remove others, and a QR code to log another one in.

import { listPasskeys, makeLink, removePasskey, Refusal, vouchFor } from "./api.js";
import { writeTime } from "./clock.js";
import { describeDeviceError, enrolDevice, explainNoPasskey, signVouching } from "./passkeys.js";
import { PushSwitch } from "./push.js";
import { make, shorten, showText } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";

export class Devices {
  constructor() {
    this.heading = make("h1", { tabindex: "-1" }, "Devices");
    this.problem = make("p", { class: "problem", role: "alert", hidden: true });
    this.list = make("div");
    this.link = make("div");
    this.push = new PushSwitch();
    this.element = make(
      "section",
      { class: "view devices", "aria-label": "Devices" },
      make("a", { class: "back shown", href: "#/" }, "← All requests"),
      this.heading,
      make(
        "p",
        { class: "note" },
        "A passkey signs your approvals on your device. The signature is kept in the audit, so that a program that reads and writes every file of the daemon still cannot forge one.",
      ),
      this.problem,
      this.list,
      this.push.element,
      make("h2", {}, "Another device"),
      this.link,
    );
    this.#offerLink();
    this.refresh();
  }

  async refresh() {
    try {
      const { passkeys, required } = await listPasskeys();
      this.list.replaceChildren(...this.#show(passkeys, required));
    } catch (error) {
      this.#showProblem(error);
    }
  }

  #show(passkeys, required) {
    const parts = [];
    if (passkeys.length) parts.push(make("ul", { class: "rows plain-rows" }, ...passkeys.map((passkey) => this.#showRow(passkey))));
    else if (required) parts.push(make("p", { class: "remark" }, "Every passkey was removed, so nothing can be approved. See the how-to: losing every passkey."));
    else parts.push(make("p", { class: "remark" }, "No device has a passkey yet. Approvals are not signed: whoever gets hold of your login can approve."));
    if (!passkeys.some(({ yours }) => yours)) parts.push(...this.#offerEnrolment(required));
    else parts.push(make("details", {}, make("summary", {}, "Set up this device too"), ...this.#offerEnrolment(required)));
    return parts;
  }

  #showRow(passkey) {
    const state = passkey.trusted ? make("span", { class: "tag approved" }, "Signs") : make("span", { class: "tag pending" }, "Not trusted yet");
    const buttons = [];
    if (!passkey.trusted) buttons.push(this.#button("Trust it", "approve", async () => vouchFor(passkey.id, await signVouching(passkey))));
    if (passkey.yours) buttons.push(this.#offerRemoval(passkey));
    return make(
      "li",
      { class: "device" },
      make("p", {}, state, " ", make("strong", {}, showText(passkey.name)), " of ", showText(passkey.subject)),
      make("p", { class: "note" }, `since ${writeTime(passkey.created, { exact: true })} · fingerprint ${passkey.fingerprint}`),
      passkey.trusted
        ? null
        : make("p", { class: "note" }, "Trust it only if you see this fingerprint on that device now. You sign with a device that is trusted."),
      buttons.length ? make("div", { class: "buttons" }, ...buttons) : null,
    );
  }

  /** The first press only asks. */
  #offerRemoval(passkey) {
    const button = make("button", { type: "button", class: "quiet" }, "Remove");
    button.addEventListener("click", () => {
      if (button.classList.contains("deny")) return this.#run(() => removePasskey(passkey.id), button);
      button.className = "deny";
      button.textContent = "Remove it: it can then approve nothing";
    });
    return button;
  }

  #offerEnrolment(required) {
    const why = explainNoPasskey();
    if (why) return [make("p", { class: "remark" }, why), location.hostname === "127.0.0.1" ? this.#offerLocalhost() : ""];
    const name = make("input", { id: "device", type: "text", maxlength: "60", value: guessName(), autocomplete: "off" });
    const form = make(
      "form",
      { class: "enrol" },
      make("label", { for: "device" }, "Name of this device"),
      name,
      make("p", { class: "note" }, required ? "A device that approves already must then trust it." : "From then on every approval here must be signed, by everybody."),
      make("div", { class: "buttons" }, make("button", { type: "submit", class: "approve" }, "Set up a passkey")),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#run(() => enrolDevice(name.value.trim() || "device"), form.querySelector("button"));
    });
    return [form];
  }

  /** A login belongs to one address, so the way to the other one is a new login link. */
  #offerLocalhost() {
    const button = this.#button("Continue at localhost", "approve", async () => {
      const link = new URL((await makeLink()).url);
      link.protocol = location.protocol;
      link.host = `localhost:${location.port}`;
      location.assign(link);
    });
    return make("div", { class: "buttons" }, button);
  }

  #offerLink() {
    const button = make("button", { type: "button" }, "Show a login link");
    button.addEventListener("click", () => this.#run(async () => this.#showLink(await makeLink()), button));
    this.link.replaceChildren(make("p", { class: "note" }, "Scan it with your phone: it logs you in there, once, within 15 minutes."), make("div", { class: "buttons" }, button));
  }

  #showLink({ url, rows }) {
    const local = /^https?:\/\/(127\.|localhost|\[::1\])/.test(url);
    this.link.replaceChildren(
      drawCode(rows),
      make("pre", { tabindex: "0", class: "link" }, url),
      make("p", { class: "note" }, "Nobody else may see it. It logs in once, within 15 minutes."),
      local ? make("p", { class: "remark odd-note" }, "Only this machine reaches that address. For a phone, start the daemon with ", make("code", {}, "--public-url"), ".") : "",
    );
  }

  #button(text, kind, act) {
    const button = make("button", { type: "button", class: kind }, text);
    button.addEventListener("click", () => this.#run(act, button));
    return button;
  }

  async #run(act, button) {
    button.disabled = true;
    this.#showProblem(null);
    try {
      await act();
      await this.refresh();
    } catch (error) {
      this.#showProblem(error);
    } finally {
      button.disabled = false;
    }
  }

  #showProblem(error) {
    const text = error ? describeDeviceError(error) || (error instanceof Refusal ? shorten(error.message, 300) : "No connection. Try again.") : "";
    this.problem.textContent = text;
    this.problem.hidden = !text;
  }
}

function guessName() {
  const agent = navigator.userAgent;
  const known = [["iPhone", "iPhone"], ["iPad", "iPad"], ["Android", "Android phone"], ["Macintosh", "Mac"], ["Windows", "Windows PC"], ["Linux", "Linux PC"]];
  return known.find(([sign]) => agent.includes(sign))?.[1] ?? "My device";
}

/** Draw a QR code with a quiet zone, dark on light in both colour schemes, as scanners expect. */
function drawCode(rows) {
  const size = rows.length + 8;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${size} ${size}`);
  svg.setAttribute("class", "code");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "QR code of the login link");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", rows.flatMap((row, y) => [...row].map((bit, x) => (bit === "1" ? `M${x + 4} ${y + 4}h1v1h-1z` : ""))).join(""));
  svg.append(path);
  return svg;
}

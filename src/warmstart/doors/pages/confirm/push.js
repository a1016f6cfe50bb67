// Notifications by the browser's own push service, and the service worker that shows them. Nothing is cached: a page that
// cannot reach the daemon must not look as if it could.

import { addPush, findPush, removePush } from "./api.js";
import { make } from "./text.js";

const WORKER = "/service-worker.js";
const READY = 10_000; // milliseconds that the service worker may take to start

/** Register the service worker, which makes the page installable. */
export function registerWorker() {
  if (!("serviceWorker" in navigator)) return;
  const only = window.trustedTypes?.createPolicy("worker", { createScriptURL: () => WORKER });
  navigator.serviceWorker.register(only ? only.createScriptURL("") : WORKER).catch(() => {});
}

export class PushSwitch {
  constructor() {
    this.text = make("p", { class: "note", role: "status" });
    this.button = make("button", { type: "button", hidden: true });
    this.element = make("section", { class: "push", "aria-label": "Notifications" }, make("h2", {}, "Notifications on this device"), this.text, make("div", { class: "buttons" }, this.button));
    this.button.addEventListener("click", () => this.#change());
    this.#show();
  }

  async #show() {
    try {
      const { key, subscribed } = await findPush();
      this.key = key;
      const why = explainNoPush(key);
      this.isOn = Boolean(subscribed && !why);
      this.text.textContent = why || (this.isOn ? "This device is notified of every new request." : "Be notified of new requests, even when this page is closed.");
      this.button.textContent = this.isOn ? "Turn off" : "Turn on";
      this.button.hidden = Boolean(why);
    } catch {
      this.text.textContent = "Whether this device is notified could not be read.";
    }
  }

  async #change() {
    this.button.disabled = true;
    try {
      await (this.isOn ? unsubscribe() : subscribe(this.key));
      await this.#show();
    } catch (error) {
      this.text.textContent = `It did not work: ${describePushError(error)}`;
    } finally {
      this.button.disabled = false;
    }
  }
}

function explainNoPush(key) {
  if (!key) return "The daemon has no push. Install it with: pip install 'warmstart[push]'";
  if (!("PushManager" in window) || !("serviceWorker" in navigator)) {
    return "This browser offers no push here. It needs HTTPS; on an iPhone, add this page to the home screen first.";
  }
  return "";
}

async function subscribe(key) {
  if ((await Notification.requestPermission()) !== "granted") throw new Error("the browser does not allow notifications");
  const worker = await Promise.race([navigator.serviceWorker.ready, new Promise((_, reject) => setTimeout(() => reject(new Error("the service worker did not start")), READY))]);
  const made = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const { endpoint, keys } = made.toJSON();
  await addPush({ endpoint, p256dh: keys.p256dh, auth: keys.auth });
}

async function unsubscribe() {
  const worker = await navigator.serviceWorker.getRegistration();
  const made = await worker?.pushManager.getSubscription();
  await made?.unsubscribe();
  await removePush();
}

function describePushError(error) {
  return error.name === "AbortError" ? "the browser's push service cannot be reached" : error.message;
}

// Calls to the daemon that served this page, and to no other server.
//
// A login consists of two secrets. The browser sends the cookie to every port of the machine. The token from the login's
// answer is stored where only this address and port can read it, and is sent with every call.

import { readJson } from "./json.js";

const PATIENCE = 15_000; // milliseconds
const TOKEN = "warmstart-confirm-token"; // its name in the browser's storage

/** The daemon refused a call; the message says why. */
export class Refusal extends Error {
  constructor(status, body) {
    super(typeof body.error === "string" ? body.error : `the daemon answered ${status}`);
    this.status = status;
    this.code = body.code || "";
    this.decision = body.decision || null;
  }
}

/** No answer came, so the call may or may not have arrived. */
export class NoAnswer extends Error {}

let token = ""; // of the login that this tab shows; another tab may have logged in since, perhaps as somebody else

export async function logIn(code) {
  const session = await call("POST", "/login", { code });
  token = session.csrf_token;
  store(token);
  return session;
}

/** Return who is logged in here, or null. */
export async function findSession() {
  const stored = readStored();
  if (!stored) return null;
  try {
    const session = await call("GET", "/session", undefined, stored);
    token = stored;
    return session;
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) return null;
    throw error;
  }
}

export async function logOut() {
  await call("POST", "/logout", {});
  token = "";
  store("");
}

/** Call the listener when another tab has logged in or out. */
export function onOtherLogin(listener) {
  window.addEventListener("storage", ({ key }) => {
    if (key === TOKEN || key === null) listener(); // null: the storage was cleared
  });
}

export function listRequests(wanted) {
  return call("GET", `/confirm?${new URLSearchParams(wanted)}`);
}

export function findRequest(id) {
  return call("GET", `/confirm/${encodeURIComponent(id)}`);
}

/** `verdict` is "approve" or "deny". */
export function decide(id, verdict, given) {
  return call("POST", `/confirm/${encodeURIComponent(id)}/${verdict}`, given);
}

/** Deny everything that one requester is waiting for. */
export function denyAll(requester, reason) {
  return call("POST", "/deny-all", { requester, reason });
}

export function listPasskeys() {
  return call("GET", "/passkeys");
}

export function offerEnrolment() {
  return call("POST", "/passkeys/options", {});
}

export function enrol(name, answer) {
  return call("POST", "/passkeys", { name, answer });
}

export function vouchFor(id, passkey) {
  return call("POST", `/passkeys/${encodeURIComponent(id)}/vouch`, { passkey });
}

export function removePasskey(id) {
  return call("DELETE", `/passkeys/${encodeURIComponent(id)}`);
}

export function makeLink() {
  return call("POST", "/devices/link", {});
}

export function findPush() {
  return call("GET", "/push");
}

export function addPush(subscription) {
  return call("POST", "/push", subscription);
}

export function removePush() {
  return call("DELETE", "/push");
}

/** Return audit entries after a sequence, or the latest ones. */
export function readAudit(wanted) {
  return call("GET", `/audit?${new URLSearchParams(wanted)}`);
}

/** Open the event stream, starting with the events after `since`. Throws if there is none. */
export async function openEvents(since, signal) {
  const headers = { Accept: "text/event-stream" };
  if (since) headers["Last-Event-ID"] = since;
  const response = await send("GET", "/events", token, { headers, signal });
  const isStream = response.ok && response.headers.get("Content-Type")?.startsWith("text/event-stream");
  if (!isStream) throw new Refusal(response.status, {});
  return response;
}

function readStored() {
  try {
    return localStorage.getItem(TOKEN);
  } catch {
    return null;
  }
}

function store(value) {
  try {
    if (value) localStorage.setItem(TOKEN, value);
    else localStorage.removeItem(TOKEN);
  } catch {
    // without storage the login lasts as long as this tab is open
  }
}

async function call(method, path, body, secret = token) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response, text;
  try {
    response = await send(method, path, secret, {
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(PATIENCE),
    });
    text = await response.text();
  } catch (error) {
    throw new NoAnswer(String(error));
  }
  const answer = read(text);
  if (response.ok) return answer;
  throw new Refusal(answer.code === "bad_csrf" ? 401 : response.status, answer); // a cookie without the token is no login
}

function send(method, path, secret, options) {
  if (secret) options.headers["X-CSRF-Token"] = secret;
  return fetch(path, { method, cache: "no-store", credentials: "same-origin", redirect: "error", ...options });
}

function read(text) {
  try {
    return readJson(text || "{}") ?? {};
  } catch {
    return {};
  }
}

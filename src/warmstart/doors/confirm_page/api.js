// Calls to the daemon that served this page. Nobody else is ever called.

import { readJson } from "./json.js";

const PATIENCE = 15_000; // milliseconds

/** The daemon said no, and why. */
export class Refusal extends Error {
  constructor(status, body) {
    super(typeof body.error === "string" ? body.error : `the daemon answered ${status}`);
    this.status = status;
    this.code = body.code || "";
    this.decision = body.decision || null;
  }
}

/** No answer came, so it is not known whether the call arrived. */
export class NoAnswer extends Error {}

let csrfToken = "";

export async function logIn(code) {
  return remember(await call("POST", "/login", { code }));
}

/** Who is logged in here, or null. */
export async function findSession() {
  try {
    return remember(await call("GET", "/session"));
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) return null;
    throw error;
  }
}

export async function logOut() {
  await call("POST", "/logout", {});
  csrfToken = "";
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

function remember(session) {
  csrfToken = session.csrf_token;
  return session;
}

async function call(method, path, body) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && csrfToken) headers["X-CSRF-Token"] = csrfToken;
  let response, text;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      credentials: "same-origin",
      redirect: "error",
      signal: AbortSignal.timeout(PATIENCE),
    });
    text = await response.text();
  } catch (error) {
    throw new NoAnswer(String(error));
  }
  const answer = read(text);
  if (!response.ok) throw new Refusal(response.status, answer);
  return answer;
}

function read(text) {
  try {
    return readJson(text || "{}") ?? {};
  } catch {
    return {};
  }
}

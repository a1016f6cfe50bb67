// The exact arguments, for people: every value whole and in a frame of its own, so that text cannot pass for structure.
// Beside it the same as JSON, as the daemon wrote it. Nothing is folded away or cut short: what is approved is read.

import { ExactNumber, writeJson } from "./json.js";
import { findOddities, make, showText } from "./text.js";

const DEEPEST = 4; // levels that are laid out; what is below is written as JSON

export function showArguments(request) {
  return [...tellMasks(request), ...tellOddities(request), showValue(request.details ?? {}, 0), showJson(request)];
}

/** What cannot be seen here, and what that means for who decides. */
function tellMasks(request) {
  const parts = [];
  if (request.masked > 0) {
    const what = request.masked === 1 ? "1 secret is masked" : `${request.masked} secrets are masked`;
    parts.push(`${what}: the agent uses the real value, which nobody can see here.`);
  } else if (findOddities(request.description).secret) parts.push("Secrets in the description are masked.");
  if (parts.length) {
    parts.push("A mask covers as many characters as it says, and none that a shell, a URL or SQL acts on.");
    parts.push("Where one stands for a command, a file or a recipient, deny if in doubt.");
  }
  return parts.length ? [make("p", { class: "remark" }, parts.join(" "))] : [];
}

function tellOddities(request) {
  const said = [request.description, request.claimed_requester, request.session_key, writeStrings(request.details)];
  const odd = findOddities(said.join("\n"));
  const remarks = [];
  if (odd.hidden) {
    const what = odd.hidden === 1 ? "1 character" : `${odd.hidden} characters`;
    remarks.push(`${what} would not be seen and are written out, like \\u200b.`);
  }
  if (odd.mixed) remarks.push("Words that mix letters of several alphabets are underlined: they may not be what they look like.");
  if (odd.turned) {
    remarks.push("This has letters that are written from right to left, underlined. It is shown in the order in which it is stored, so these words read backwards.");
  }
  return remarks.map((remark) => make("p", { class: "remark odd-note" }, remark));
}

function showValue(value, depth) {
  if (typeof value === "string") return showString(value);
  if (!isContainer(value) || depth >= DEEPEST) return showPlain(writeJson(value));
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  if (!isList) entries.sort(([, a], [, b]) => howBulky(a) - howBulky(b)); // small things first, each group by name
  if (entries.length === 0) {
    return depth === 0 ? make("p", { class: "note" }, "No arguments.") : showPlain(isList ? "[]" : "{}");
  }
  const rows = entries.map(([name, inner]) =>
    make(
      "div",
      { class: howBulky(inner) === 0 ? "short" : null },
      make("dt", {}, isList ? `${Number(name) + 1}.` : showText(name)),
      make("dd", {}, showValue(inner, depth + 1)),
    ),
  );
  return make("dl", { class: "values" }, ...rows);
}

/** 0 fits beside its name, 1 is text that needs room, 2 holds other values. */
function howBulky(value) {
  if (isContainer(value)) return 2;
  const text = String(value);
  return text.length > 60 || text.includes("\n") ? 1 : 0;
}

function showString(text) {
  const lines = text.split("\n").length;
  const box = make("div", { class: "value text", dir: "ltr" }, text === "" ? make("i", {}, "empty text") : showText(text));
  return lines > 10 ? [make("p", { class: "note" }, `${lines} lines, all shown`), box] : box;
}

/** A number, true, false, null, or what lies deep. */
function showPlain(text) {
  return make("div", { class: "value plain", dir: "ltr" }, showText(text));
}

function showJson(request) {
  return make(
    "details",
    { class: "json" },
    make("summary", {}, "The same as JSON"),
    make("pre", { dir: "ltr", tabindex: "0" }, showText(request.details_text)),
    make("p", { class: "note" }, "Fingerprint (SHA-256 of the action and the unmasked arguments): ", make("code", {}, request.digest)),
  );
}

function isContainer(value) {
  return value !== null && typeof value === "object" && !(value instanceof ExactNumber);
}

function writeStrings(value) {
  if (typeof value === "string") return value;
  if (!isContainer(value)) return "";
  return Object.entries(value).map(([name, inner]) => `${name}\n${writeStrings(inner)}`).join("\n");
}

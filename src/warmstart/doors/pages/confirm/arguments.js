// Shows the exact arguments: every value in full and in a frame of its own, so that text cannot pass for structure; below
// them the daemon's own JSON. Nothing is folded or cut, because people must see what they approve.

import { ExactNumber, writeJson } from "./json.js";
import { findOddities, make, showText } from "./text.js";

const DEEPEST = 4; // levels that are laid out; deeper values are shown as JSON

const KINDS = { danger: "Dangerous", encoded: "Encoded", lookalike: "Look-alike", hidden: "Invisible", unsearched: "Attention" };

export function showArguments(request) {
  return [
    ...showFindings(request),
    ...describeMasks(request),
    ...describeOddities(request),
    showValue(request.details ?? {}, 0),
    showJson(request),
  ];
}

/** Show the arguments again where the decision is made: what to look at first, then all values. */
export function showBriefly(request) {
  return make("div", { class: "brief", tabindex: "0", role: "group", "aria-label": "Arguments" }, ...showFindings(request), showValue(request.details ?? {}, 0));
}

/** List what a person should look at first: commands that destroy or hide, encoded text, look-alike words. */
function showFindings({ findings }) {
  if (!findings?.length) return [];
  const items = joinFindings(findings).map(({ kind, where, line, note, text }) =>
    make(
      "li",
      {},
      make("strong", {}, `${KINDS[kind] ?? "Attention"}: `),
      showText(note),
      where ? [" in ", showText(where), line > 1 ? `, line ${line.toLocaleString("en")}` : ""] : "",
      text ? make("div", { class: "value text", dir: "ltr" }, showText(text)) : "",
    ),
  );
  return [make("section", { class: "findings", "aria-label": "Look at this first" }, make("h3", {}, "Look at this first"), make("ul", {}, ...items))];
}

/** Show a line once, with all that is dangerous in it. */
function joinFindings(findings) {
  const joined = [];
  for (const finding of findings) {
    const { kind, where, line, text } = finding;
    const same = text && joined.find((one) => one.kind === kind && one.where === where && one.line === line && one.text === text);
    if (same) same.note += `; ${finding.note}`;
    else joined.push({ ...finding });
  }
  return joined;
}

function describeValue({ mask, seen, approved }) {
  if (!seen) return `${mask}: first time seen`;
  const times = (count) => (count === 1 ? "once" : `${count} times`);
  return approved ? `${mask}: approved ${times(approved)} before` : `${mask}: seen ${times(seen)} before, never approved`;
}

/** Say that secrets are masked, and what that means for the decision. */
function describeMasks(request) {
  const parts = [];
  if (request.masked > 0) {
    const what = request.masked === 1 ? "1 secret is masked" : `${request.masked} secrets are masked`;
    parts.push(`${what}: the agent uses the real value, which nobody can see here.`);
  } else if (findOddities(request.description).secret) parts.push("Secrets in the description are masked.");
  if (parts.length) {
    parts.push("A mask covers as many characters as it says, and none that a shell, a URL or SQL acts on.");
    parts.push("Where one stands for a command, a file or a recipient, deny if in doubt.");
  }
  if (!parts.length) return [];
  const known = (request.masks ?? []).map((value) => make("li", {}, describeValue(value)));
  return [make("p", { class: "remark" }, parts.join(" ")), known.length ? make("ul", { class: "remark masks" }, ...known) : ""].filter(Boolean);
}

function describeOddities(request) {
  const texts = [request.description, request.claimed_requester, request.session_key, writeStrings(request.details)];
  const odd = findOddities(texts.join("\n"));
  const remarks = [];
  if (odd.hidden) {
    const what = odd.hidden === 1 ? "1 character" : `${odd.hidden} characters`;
    remarks.push(`${what} would be invisible and ${odd.hidden === 1 ? "is" : "are"} written out, like \\u200b.`);
  }
  if (odd.mixed) remarks.push("Words that mix letters of several alphabets are underlined: they may not be what they look like.");
  if (odd.turned) {
    remarks.push("Letters that are written from right to left are underlined. They are shown in stored order, so these words read backwards.");
  }
  return remarks.map((remark) => make("p", { class: "remark odd-note" }, remark));
}

function showValue(value, depth) {
  if (typeof value === "string") return showString(value);
  if (!isContainer(value) || depth >= DEEPEST) return showPlain(writeJson(value));
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  if (!isList) entries.sort(([, a], [, b]) => measureBulk(a) - measureBulk(b)); // small values first, each group by name
  if (entries.length === 0) {
    return depth === 0 ? make("p", { class: "note" }, "No arguments.") : showPlain(isList ? "[]" : "{}");
  }
  const rows = entries.map(([name, inner]) =>
    make(
      "div",
      { class: measureBulk(inner) === 0 ? "short" : null },
      make("dt", {}, isList ? `${Number(name) + 1}.` : showText(name)),
      make("dd", {}, showValue(inner, depth + 1)),
    ),
  );
  return make("dl", { class: "values" }, ...rows);
}

/** Return 0 for a value that fits beside its name, 1 for a longer text, 2 for a container. */
function measureBulk(value) {
  if (isContainer(value)) return 2;
  const text = String(value);
  return text.length > 60 || text.includes("\n") ? 1 : 0;
}

function showString(text) {
  const lines = text.split("\n").length;
  const box = make("div", { class: "value text", dir: "ltr" }, text === "" ? make("i", {}, "empty text") : showText(text));
  return lines > 10 ? [make("p", { class: "note" }, `${lines} lines, all shown`), box] : box;
}

/** Show a number, true, false, null, or a deeply nested value. */
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

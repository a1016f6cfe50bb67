// Text of agents is data. It becomes text nodes, stands apart from its surroundings, and reads from left to right in the
// order in which it is stored: `mv A B` must not read as `mv B A` because the names are Hebrew. What would show nothing,
// turn the line around or push words out of sight is written out.

const HIDDEN = /[\p{C}\p{Z}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/u;
const SECRET = /\{\{SECRET:[^{}\s]{1,80}\}\}(?:⟨[0-9,]+ characters?(?: on [0-9,]+ lines)?(?:⟩|(?=, decoded: )))?/u;
const SPACES = / {16,}/u;
const EMPTY_LINES = /\n(?:[ \t]*\n){3,}/u;
const MARKS = /\p{M}{4,}/u; // piled up, they cover the lines around
// Letters of Hebrew, Arabic, Syriac, Thaana, N'Ko and their like; not what is hidden among them, and not piled marks.
const TURNED = /(?:(?![\p{C}\p{M}])[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}])+/u;
const MIXED = /(?<!\p{L})(?=\p{L}*\p{Script=Latin})(?=\p{L}*[\p{Script=Cyrillic}\p{Script=Greek}])\p{L}+/u;

const kinds = {
  secret: SECRET,
  spaces: SPACES,
  lines: EMPTY_LINES,
  break: /\n/u,
  space: / /u,
  marks: MARKS,
  mixed: MIXED,
  hidden: HIDDEN,
  turned: TURNED,
};
const ODD = new RegExp(Object.entries(kinds).map(([name, kind]) => `(?<${name}>${kind.source})`).join("|"), "gu");

/** An element with attributes and children; strings become text, nothing is ever parsed. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** Foreign text, isolated, in its stored order and with nothing hidden in it. */
export function showText(text, attributes = {}) {
  return make("bdi", attributes, make("bdo", { dir: "ltr" }, ...pieces(String(text))));
}

/** How many characters of a text are written out, whether words mix alphabets, are written from right to left or masked. */
export function findOddities(text) {
  const found = { hidden: 0, mixed: 0, turned: 0, secret: 0 };
  for (const { groups, 0: match } of String(text).matchAll(ODD)) {
    if (groups.hidden || groups.marks) found.hidden += [...match].length;
    if (groups.mixed) found.mixed += 1;
    if (groups.turned) found.turned += 1;
    if (groups.secret) found.secret += 1;
  }
  return found;
}

/** On one line and not too long, for places where text cannot be marked up: titles, announcements. */
export function shorten(text, most = 80) {
  const flat = String(text).replace(ODD, (match, ...rest) => {
    const groups = rest.at(-1);
    if (groups.hidden || groups.marks) return [...match].map(writeOut).join("");
    return groups.break || groups.lines || groups.spaces ? " " : match;
  });
  const characters = [...flat];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : flat;
}

function pieces(text) {
  const found = [];
  let plain = "";
  let at = 0;
  for (const match of text.matchAll(ODD)) {
    plain += text.slice(at, match.index);
    at = match.index + match[0].length;
    if (match.groups.break || match.groups.space) {
      plain += match[0];
      continue;
    }
    found.push(plain, mark(match));
    plain = "";
  }
  found.push(plain + text.slice(at));
  return found;
}

function mark({ 0: match, groups }) {
  if (groups.secret) return make("span", { class: "secret", title: "A secret, masked here" }, match);
  if (groups.turned) return make("span", { class: "odd", title: "Written from right to left; shown in the order in which it is stored" }, match);
  if (groups.mixed) return make("span", { class: "odd", title: "Mixes letters of several alphabets that look alike" }, match);
  if (groups.spaces) return make("span", { class: "odd" }, `⟨${match.length} spaces⟩`);
  if (groups.lines) {
    const count = match.split("\n").length - 2;
    return make("span", { class: "odd" }, `\n⟨${count} empty lines⟩\n`);
  }
  const written = [...match].map(writeOut).join("");
  return make("span", { class: "odd", title: "A character that would not be seen" }, written);
}

function writeOut(character) {
  if (character === "\n" || character === " ") return character;
  if (character === "\t") return "\\t";
  if (character === "\r") return "\\r";
  const code = character.codePointAt(0).toString(16);
  return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
}

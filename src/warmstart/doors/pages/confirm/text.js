// Shows texts of agents as data. They become text nodes, isolated from their surroundings, left to right in stored order:
// `mv A B` must not read as `mv B A` because the names are Hebrew. Characters that are invisible, change the direction or
// push words out of sight are written out.

const HIDDEN = /(?:(?![ \n])[\p{C}\p{Z}\p{DI}\u2800\u{e0100}-\u{e01ef}])+/u;
const SECRET = /\{\{SECRET:[^{}\s]{1,80}\}\}(?:⟨[0-9,]+ characters?(?: on [0-9,]+ lines)?(?:⟩|(?=, decoded: )))?/u;
const SPACES = / {16,}/u;
const EMPTY_LINES = /\n(?:[ \t]*\n){3,}/u;
const MOST_WRITTEN = 16; // characters of a longer run of invisible ones that are written out
const MOST_MARKED = 2_000; // marked places in one text; further ones are written out without a mark, for the browser's sake
const MARKS = /\p{M}{4,}/u; // stacked, they cover the lines around them
// Right-to-left letters such as Hebrew, Arabic, Syriac, Thaana and N'Ko, without hidden characters and combining marks.
const TURNED = /(?:(?![\p{C}\p{M}])[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}])+/u;
// Whole words of alphabets whose letters look like Latin ones; the daemon says which of them look like another word.
const FOREIGN = /(?<!\p{L})(?:\p{Script=Cyrillic}|\p{Script=Armenian}|\p{Script=Greek}|\p{Script=Cherokee}|\p{Script=Lisu}|[\uff21-\uff5a]|[\u{1d400}-\u{1d7ff}])+(?!\p{L})/u;
const MIXED = /(?<!\p{L})(?=\p{L}*\p{Script=Latin})(?=\p{L}*[\p{Script=Cyrillic}\p{Script=Greek}])\p{L}+/u;

const kinds = {
  secret: SECRET,
  spaces: SPACES,
  lines: EMPTY_LINES,
  break: /\n/u,
  space: / /u,
  marks: MARKS,
  mixed: MIXED,
  foreign: FOREIGN,
  hidden: HIDDEN,
  turned: TURNED,
};
const ODD = new RegExp(Object.entries(kinds).map(([name, kind]) => `(?<${name}>${kind.source})`).join("|"), "gu");

/** Make an element with attributes and children; strings become text nodes and are never parsed. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** Show an agent's text, isolated, in stored order, with hidden characters written out. */
export function showText(text, attributes = {}) {
  return make("bdi", attributes, make("bdo", { dir: "ltr" }, ...split(String(text))));
}

/** Count the hidden characters, words of mixed alphabets, right-to-left words and masked secrets in a text. */
export function findOddities(text) {
  const counts = { hidden: 0, mixed: 0, turned: 0, secret: 0 };
  for (const { groups, 0: match } of String(text).matchAll(ODD)) {
    if (groups.hidden || groups.marks) counts.hidden += [...match].length;
    if (groups.mixed) counts.mixed += 1;
    if (groups.turned) counts.turned += 1;
    if (groups.secret) counts.secret += 1;
  }
  return counts;
}

/** Shorten a text to one line for places without markup, such as titles and announcements. */
export function shorten(text, most = 80) {
  const flat = String(text).replace(ODD, (match, ...rest) => {
    const groups = rest.at(-1);
    if (groups.hidden || groups.marks) return writeRun(match);
    return groups.break || groups.lines || groups.spaces ? " " : match;
  });
  const characters = [...flat];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : flat;
}

/** Split a text into plain strings and marked elements. */
function split(text) {
  const parts = [];
  let plain = "";
  let at = 0;
  for (const match of text.matchAll(ODD)) {
    plain += text.slice(at, match.index);
    at = match.index + match[0].length;
    if (match.groups.break || match.groups.space) {
      plain += match[0];
      continue;
    }
    if (parts.length >= 2 * MOST_MARKED) {
      plain += match.groups.hidden ? writeRun(match[0]) : match[0];
      continue;
    }
    parts.push(plain, mark(match));
    plain = "";
  }
  parts.push(plain + text.slice(at));
  return parts;
}

function mark({ 0: match, groups }) {
  if (groups.secret) return make("span", { class: "secret", title: "A secret, masked here" }, match);
  if (groups.turned) return make("span", { class: "odd", title: "Written from right to left; shown in stored order" }, match);
  if (groups.mixed) return make("span", { class: "odd", title: "Mixes letters of several alphabets that look alike" }, match);
  if (groups.foreign) return make("span", { class: "odd foreign", title: "Not Latin letters, though some may look like them" }, match);
  if (groups.spaces) return make("span", { class: "odd" }, `⟨${match.length} spaces⟩`);
  if (groups.lines) {
    const count = match.split("\n").length - 2;
    return make("span", { class: "odd" }, `\n⟨${count} empty lines⟩\n`);
  }
  return make("span", { class: "odd", title: "Invisible characters, written out" }, writeRun(match));
}

/** Write invisible characters out; of a long run, the first ones and how many there are. */
function writeRun(match) {
  const characters = [...match];
  const written = characters.slice(0, MOST_WRITTEN).map(writeOut).join("");
  if (characters.length <= MOST_WRITTEN) return written;
  return `${written}⟨${characters.length.toLocaleString("en")} invisible characters⟩`;
}

function writeOut(character) {
  if (character === "\n" || character === " ") return character;
  if (character === "\t") return "\\t";
  if (character === "\r") return "\\r";
  const code = character.codePointAt(0).toString(16);
  return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
}

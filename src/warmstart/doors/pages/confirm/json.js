// Reads JSON without losing anything: numbers that JavaScript cannot hold (18446744073709551615, 1.0) stay as they were
// written, because people decide about exactly these values.

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** A number as it was written. */
export class ExactNumber {
  constructor(source) {
    this.source = source;
  }

  valueOf() {
    return Number(this.source);
  }

  toString() {
    return this.source;
  }
}

export function readJson(text) {
  // Every string gets an "s" in front and every number becomes a string with an "n", so that they stay distinct.
  const tagged = text.replace(TOKEN, (token) => (token[0] === '"' ? `"s${token.slice(1)}` : `"n${token}"`));
  return untag(JSON.parse(tagged));
}

function untag(value) {
  if (typeof value === "string") return value[0] === "s" ? value.slice(1) : readNumber(value.slice(1));
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(untag);
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name.slice(1), untag(inner)]));
}

function readNumber(source) {
  const number = Number(source);
  return String(number) === source ? number : new ExactNumber(source);
}

/** Write a value of readJson as indented JSON, with its numbers as they were. */
export function writeJson(value, indent = "") {
  if (value instanceof ExactNumber) return value.source;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const deeper = `${indent}  `;
  const inner = Array.isArray(value)
    ? value.map((item) => writeJson(item, deeper))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${writeJson(item, deeper)}`);
  const [first, last] = Array.isArray(value) ? "[]" : "{}";
  return inner.length ? `${first}\n${deeper}${inner.join(`,\n${deeper}`)}\n${indent}${last}` : first + last;
}

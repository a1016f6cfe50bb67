// The page works without this for reading. Scripts send changes, follow long work, and show what happens live.
// Text only ever becomes text nodes: nothing here makes markup of it.

const TOKEN = "warmstart-ui-token";
const said = document.getElementById("said");

const fragment = new URLSearchParams(location.hash.slice(1));
if (fragment.has("token")) {
  localStorage.setItem(TOKEN, fragment.get("token"));
  history.replaceState(null, "", location.pathname + location.search);
}

function say(text, isWrong = false) {
  said.textContent = text;
  said.classList.toggle("wrong", isWrong);
}

function make(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const ENDED = "The server of this page does not answer; it has probably ended. Run `warmstart ui` again and open the link that it prints.";

async function ask(address, options) {
  try {
    return await fetch(address, options);
  } catch {
    throw new Error(ENDED);
  }
}

async function send(action, body) {
  const answer = await ask(`/do/${action}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Warmstart-Token": localStorage.getItem(TOKEN) || "" },
    body: JSON.stringify(body),
  });
  const result = await answer.json();
  if (!answer.ok) throw new Error(result.error || `the server answered ${answer.status}`);
  return result;
}

function preview(form, result) {
  const place = form.nextElementSibling;
  place.replaceChildren(make("pre", result.shown.text, { class: "code", tabindex: "0" }), make("p", result.said, { class: "note" }));
}

async function submit(event) {
  event.preventDefault();
  const form = event.target;
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    const result = await send(form.dataset.action, Object.fromEntries(new FormData(form)));
    if (result.shown) {
      preview(form, result);
    } else {
      say(result.said);
      sessionStorage.setItem("said", result.said);
      if (result.next) location.assign(result.next);
      else location.reload();
      return;
    }
  } catch (problem) {
    say(problem.message, true);
  }
  button.disabled = false;
}

for (const form of document.querySelectorAll("form[data-action]")) {
  form.querySelector("button").disabled = false;
  form.addEventListener("submit", submit);
}
if (sessionStorage.getItem("said")) {
  say(sessionStorage.getItem("said"));
  if (!document.querySelector("[data-pending]")) sessionStorage.removeItem("said");
}

// Long work and figures: ask how far they are, and load the page again when they are ready.

async function askPending(shown) {
  const key = shown.dataset.pending || "";
  let state;
  try {
    const answer = await ask(`/pending.json?key=${encodeURIComponent(key)}`);
    if (!answer.ok) return location.reload(); // the login has ended, and the page says so
    state = await answer.json();
  } catch (problem) {
    say(problem.message, true);
    setTimeout(askPending, 5000, shown); // it may have been started again
    return;
  }
  const part = shown.dataset.work ? state.work : state.figure;
  const isReady = !part || (shown.dataset.work ? part.ended !== null : part.is_current);
  if (isReady) return location.reload();
  const bar = shown.querySelector("progress");
  const text = shown.querySelector("span");
  if (part.total) {
    bar.max = part.total;
    bar.value = part.done;
    text.textContent = shown.dataset.work
      ? `${part.kind}: ${part.done.toLocaleString("en")} of ${part.total.toLocaleString("en")}`
      : `Being computed: ${part.done.toLocaleString("en")} of ${part.total.toLocaleString("en")} sessions read.`;
  }
  setTimeout(askPending, 700, shown);
}
const pending = document.querySelector("[data-pending], [data-work]");
if (pending) setTimeout(askPending, 400, pending);

// Live

const SHOWN = 100;

function showEvent(list, event) {
  const item = document.createElement("li");
  const at = event.at ? event.at.slice(11, 19) : "";
  if (event.kind === "session") {
    if (event.status === "error") item.className = "failed";
    item.append(`${at} `, make("a", event.task || event.key.slice(0, 8), { href: `/sessions/${encodeURIComponent(event.key)}?live=1` }));
    item.append(` · ${event.agent} · ${event.counts}`);
    if (event.tool) item.append(` · ${event.tool}: ${event.status}${event.cause ? `, ${event.cause}` : ""}`);
  } else if (event.kind === "advice") {
    item.append(`${at} note `, make("a", event.note, { href: `/notes/${encodeURIComponent(event.note)}` }));
    item.append(` was shown (${event.how}) to ${event.session}`);
  } else if (event.kind === "problem") {
    item.textContent = event.text;
    item.className = "failed";
  } else {
    return;
  }
  list.prepend(item);
  while (list.children.length > SHOWN) list.lastElementChild.remove();
}

const live = document.querySelector("[data-live]");
const timeline = document.querySelector("[data-session]");
if (live || (timeline && new URLSearchParams(location.search).has("live"))) {
  const source = new EventSource("/events");
  const lead = live && document.querySelector(".lead");
  source.addEventListener("message", (message) => {
    const event = JSON.parse(message.data);
    if (said.textContent === ENDED) say("");
    if (lead) lead.hidden = false;
    if (live) {
      live.dataset.live = "open";
      showEvent(live, event);
    } else if (event.kind === "session" && event.key === timeline.dataset.session) {
      location.reload();
    }
  });
  let isLeaving = false;
  source.addEventListener("error", () => {
    if (isLeaving) return;
    if (lead) lead.hidden = true; // it says that transcripts are read
    say(ENDED, true);
  });
  addEventListener("pagehide", () => {
    isLeaving = true;
    source.close();
  });
}

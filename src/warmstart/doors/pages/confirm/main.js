// The page as a whole: the login, the open request, the state of the connection.

import { findRequest, findSession, logIn, logOut, NoAnswer, onOtherLogin, Refusal } from "./api.js";
import { Audit } from "./audit.js";
import { describeDecided, Question } from "./deciding.js";
import { Devices } from "./devices.js";
import { Listing } from "./listing.js";
import { Live } from "./live.js";
import { registerWorker } from "./push.js";
import { Requests } from "./requests.js";
import { Showing } from "./showing.js";
import { make, shorten } from "./text.js";

const ADDRESS = /^#\/request\/([0-9a-f]{32})$/;
const STATES = {
  live: "Live",
  asking: "Asking every few seconds",
  lost: "Connection lost. What you see may be out of date; trying again …",
  "": "",
};
const VIEWS = { "#/audit": Audit, "#/devices": Devices };
const MOST_NEWS = 3; // announcements at a time

const part = (id) => document.getElementById(id);

class Page {
  constructor() {
    this.requests = new Requests();
    this.requests.addEventListener("change", () => this.update());
    this.requests.addEventListener("arrived", ({ detail }) => this.announce(detail));
    this.listing = new Listing(this.requests);
    this.showing = null;
    this.view = null; // another part of the page: the audit or the devices
    this.question = null;
    this.session = null;
    part("logout").addEventListener("click", () => this.leave());
    document.querySelector(".skip").addEventListener("click", (event) => {
      event.preventDefault();
      part("main").focus();
    });
    window.addEventListener("hashchange", () => this.route(true));
    document.addEventListener("keydown", (event) => this.guardKeys(event), true);
    document.addEventListener("visibilitychange", () => !document.hidden && !this.session && this.lookAgain());
    onOtherLogin(() => this.lookAgain());
    setInterval(() => this.tick(), 250);
  }

  // Login and logout

  async begin() {
    const code = location.pathname === "/login" ? location.hash.slice(1) : "";
    if (location.pathname === "/login") history.replaceState(null, "", "/"); // keeps the code out of the history
    try {
      const session = code ? await logIn(code) : await findSession();
      if (session) this.enter(session);
      else this.askToLogIn("You are not logged in on this device.");
    } catch (error) {
      this.explainNoLogin(error, code);
    }
  }

  /** Explain a failed login. A used link does not end the login of a person who is already logged in here. */
  async explainNoLogin(error, code) {
    if (error instanceof Refusal && error.status === 401 && code) {
      const session = await findSession().catch(() => null);
      if (session) return this.enter(session);
      return this.askToLogIn("This login link does not work: it was already used or has expired.");
    }
    const why = error instanceof NoAnswer ? "The daemon cannot be reached." : shorten(error.message, 300);
    this.askToLogIn(`${why} Reload the page to try again.`);
  }

  enter(session) {
    this.session = session;
    this.showTrouble("");
    part("who").replaceChildren(make("span", { class: "wordy" }, "You are "), make("bdi", {}, shorten(session.subject, 40)));
    part("who").hidden = part("logout").hidden = part("places").hidden = false;
    this.board = make("div", { class: "board" }, this.listing.element);
    part("main").replaceChildren(this.board);
    this.live = new Live({
      onRequest: (request) => this.requests.put(request),
      refresh: () => this.refresh(),
      onState: (state) => this.showState(state),
      onTrouble: (trouble) => this.showDaemonTrouble(trouble),
    });
    this.live.start();
    this.refresh().catch(() => {});
    this.route();
  }

  askToLogIn(why) {
    this.live?.stop();
    this.question?.close();
    this.live = this.session = this.showing = this.view = null;
    this.requests.forget();
    this.showState("");
    part("who").hidden = part("logout").hidden = part("places").hidden = true;
    document.title = "Confirmations";
    part("main").replaceChildren(
      make(
        "section",
        { class: "login" },
        make("h1", {}, "Log in with a link"),
        make("p", {}, why),
        make("p", {}, "There are no passwords. On the machine where the daemon runs, make a new one-time link and open it on this device:"),
        make("pre", { tabindex: "0" }, "warmstart confirm login"),
      ),
    );
  }

  async leave() {
    try {
      await logOut();
      this.showTrouble("");
      this.askToLogIn("You are logged out.");
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) this.askToLogIn("You are logged out.");
      else this.showTrouble("Logging out failed: no connection. You are still logged in.");
    }
  }

  /** Follow a login, a logout or a change of person in another tab. */
  async lookAgain() {
    const session = await findSession().catch(() => undefined);
    if (session === undefined) return; // no answer
    if (!session && this.session) this.askToLogIn("You are logged out.");
    else if (session && !this.session) this.enter(session);
    else if (session?.subject !== this.session?.subject) location.reload(); // drop everything of the other person
  }

  // Showing requests

  async refresh() {
    try {
      await this.requests.refresh();
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) this.askToLogIn("Your login has ended.");
      if (error instanceof Refusal && error.status === 403) this.askToLogIn("This login may not see requests.");
      throw error;
    }
  }

  route(byPerson = false) {
    if (!this.session) return;
    if (this.#openView(VIEWS[location.hash])) return;
    const id = ADDRESS.exec(location.hash)?.[1] ?? null;
    const before = this.showing?.id;
    if (id === (before ?? null) && byPerson && !this.hadView) return;
    this.question?.close();
    this.showTrouble("");
    this.showing?.element.remove();
    this.showing = id ? this.#open(id) : null;
    this.board.classList.toggle("open", Boolean(id));
    this.update();
    if (this.showing) {
      window.scrollTo(0, 0);
      this.showing.heading.focus();
    } else if (byPerson) this.listing.focus(before);
  }

  /** Show another part of the page instead of the requests. */
  #openView(View) {
    this.hadView = Boolean(this.view);
    for (const link of part("places").children) link.toggleAttribute("aria-current", link.hash === location.hash);
    if (View && this.view instanceof View) return true;
    this.view = View ? new View() : null;
    if (!View) {
      part("main").replaceChildren(this.board);
      return false;
    }
    this.question?.close();
    this.showTrouble("");
    part("main").replaceChildren(this.view.element);
    window.scrollTo(0, 0);
    this.view.heading.focus();
    return true;
  }

  #open(id) {
    const showing = new Showing(id, {
      requests: this.requests,
      session: this.session,
      onDecide: (request, verdict) => this.ask(request, verdict),
    });
    this.board.append(showing.element);
    findRequest(id)
      .then((request) => this.requests.put(request))
      .catch((error) => showing.showMissing(error instanceof NoAnswer ? "No connection." : shorten(error.message, 300)));
    return showing;
  }

  update() {
    if (!this.session) return;
    this.listing.update(this.showing?.id);
    this.showing?.update();
    this.endQuestion();
    const count = this.requests.waiting().length;
    document.title = count ? `(${count}) Confirmations` : "Confirmations";
    part("icon").href = count ? "/assets/icon-waiting.svg" : "/assets/icon.svg";
    this.tick();
  }

  tick() {
    if (!this.session) return;
    this.listing.tick();
    this.showing?.tick();
    this.question?.tick();
    this.requests.checkLate();
  }

  // Deciding

  ask(request, verdict) {
    if (this.question) return;
    this.showTrouble("");
    this.question = new Question(request, verdict, {
      onAnswer: (answer) => this.requests.put(answer),
      onTrouble: (text, id) => {
        this.showTrouble(text);
        this.requests.read(id).catch(() => this.refresh().catch(() => {}));
      },
      onClose: () => {
        this.question = null;
        this.showing?.heading.focus();
      },
    });
    this.question.open();
  }

  /** Close the question if someone else decided first or the time ran out. */
  endQuestion() {
    const asked = this.question;
    const now = asked && this.requests.get(asked.request.id);
    if (!now || asked.isSending) return;
    if (now.status === "pending") {
      asked.request = now;
      return;
    }
    asked.close();
    this.showTrouble(describeDecided(now));
  }

  /** Ignore a held Enter key, so that it never decides. Escape leads back to the list. */
  guardKeys(event) {
    const isWriting = event.target instanceof HTMLTextAreaElement;
    if (event.key === "Enter" && event.repeat && !isWriting) {
      event.preventDefault();
      event.stopPropagation();
    }
    if (event.key === "Escape" && (this.showing || this.view) && !this.question) location.hash = "#/";
  }

  // Messages

  showState(state) {
    const element = part("connection");
    element.className = `connection ${state}`;
    if (element.textContent !== STATES[state]) element.textContent = STATES[state];
  }

  showTrouble(text) {
    part("trouble").textContent = text;
    part("trouble").hidden = !text;
  }

  showDaemonTrouble(trouble) {
    part("daemon").textContent = trouble ? `Something is wrong with the daemon: ${trouble}.` : "";
    part("daemon").hidden = !trouble;
  }

  announce(request) {
    const news = part("news");
    if (!request || news.childElementCount >= MOST_NEWS) return;
    const line = make("span", {}, `New request: ${shorten(request.action)} by ${shorten(request.requester, 40)}. `);
    news.append(line);
    setTimeout(() => line.remove(), 5_000);
  }
}

registerWorker();
new Page().begin();

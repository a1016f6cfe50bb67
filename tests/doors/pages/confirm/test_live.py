"""The page's event stream: in pieces, broken off, paused, ended."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow  # a second of Chromium each

# Streams come one byte at a time, and it is noted from which event each goes on and whether the page closed it.
# `breakAll()`: as if the connection were gone; `hide(true)`: as if another tab were in front.
WATCHED = """
window.streams = [];
window.breakAll = () => window.streams.forEach((stream) => stream.fail());
const real = window.fetch;
window.fetch = async (path, options) => {
    const answer = await real(path, options);
    if (path !== "/events" || !answer.ok) return answer;
    const stream = { since: options.headers["Last-Event-ID"] ?? "", isClosed: false };
    options.signal.addEventListener("abort", () => { stream.isClosed = true; });
    window.streams.push(stream);
    const reader = answer.body.getReader();
    return new Response(new ReadableStream({
        start(controller) { stream.fail = () => { reader.cancel(); controller.error(new TypeError("network error")); }; },
        async pull(controller) {
            const { done, value } = await reader.read();
            if (done) return controller.close();
            for (let at = 0; at < value.length; at++) controller.enqueue(value.subarray(at, at + 1));
        },
    }), { headers: answer.headers });
};
window.isHidden = false;
Object.defineProperty(document, "hidden", { get: () => window.isHidden });
window.hide = (isHidden) => { window.isHidden = isHidden; document.dispatchEvent(new Event("visibilitychange")); };
"""


@pytest.fixture
def watched(people):
    person = people()
    person.context.add_init_script(WATCHED)
    return person.log_in()


def test_events_may_come_in_any_pieces(watched, daemon):
    said = "Grüße\u2028an alle 👋"
    daemon.submit("send_mail", description=said)
    watched.wait("1 request is waiting")
    second = daemon.submit("send_mail", {"long": "wörter " * 3_000}, description=said)
    watched.wait("2 requests are waiting")
    daemon.decide(second["id"], "deny")
    watched.wait("1 request is waiting")
    assert "Grüße" in watched.text(".cards")
    assert watched.page.evaluate("window.streams.length") == 1 and watched.complaints == []


def test_a_broken_stream_goes_on_where_it_was(watched, daemon):
    daemon.submit("send_mail")
    watched.wait("1 request is waiting")
    for count in (2, 3):
        watched.page.route("**/confirm?*", lambda route: route.abort())  # only the stream can tell
        watched.page.evaluate("window.breakAll()")
        daemon.submit("send_mail")
        watched.wait(f"{count} requests are waiting")
        watched.page.unroute("**/confirm?*")
        watched.page.wait_for_selector(".connection.live")
    numbers = [int(one or 0) for one in watched.page.evaluate("window.streams.map((one) => one.since)")]
    assert numbers[0] == 0 < numbers[1] < numbers[-1], "each goes on after what was heard before"
    assert watched.page.evaluate("window.streams.filter((one) => !one.isClosed).length") == 1


def test_what_does_not_last_is_tried_less_and_less(people, daemon):
    person = people()
    person.page.clock.install()
    person.page.route("**/events", lambda route: route.fulfill(status=200, content_type="text/html", body="hello"))
    person.page.goto(daemon.make_link())
    person.page.wait_for_selector(".connection.asking")
    tries = []
    for _ in range(3):
        for _ in range(60):
            person.page.clock.run_for(1_000)
        person.page.wait_for_timeout(300)  # a request that has left is counted in its own minute
        tries.append(len([url for url in person.asked if url.endswith("/events")]))
    assert tries[0] >= 4, "soon at first"
    assert 1 <= tries[2] - tries[1] <= 3, "twice a minute in the end"


def test_a_tab_that_nobody_looks_at_gives_its_stream_back(people, daemon):
    person = people()
    person.context.add_init_script(WATCHED)
    person.page.clock.install()
    person.log_in()
    daemon.submit("send_mail")
    person.wait("1 request is waiting")
    still_open = "window.streams.filter((one) => !one.isClosed).map((one) => one.since)"
    person.page.evaluate("window.hide(true)")
    person.page.clock.run_for(30_000)
    assert len(person.page.evaluate(still_open)) == 1
    person.page.clock.run_for(35_000)
    assert person.page.evaluate(still_open) == []
    daemon.submit("send_mail")
    person.page.clock.run_for(35_000)
    person.wait("2 requests are waiting")
    assert person.page.evaluate(still_open) == [], "it only asks now and then"
    person.page.evaluate("window.hide(false)")
    person.page.wait_for_selector(".connection.live")
    assert person.page.evaluate(still_open) == [""], "everything is read again, not event by event"


def test_a_fault_of_the_page_does_not_end_the_stream(watched, daemon):
    watched.page.evaluate("document.getElementById('icon').remove()")
    daemon.submit("send_mail")
    watched.page.wait_for_timeout(500)
    daemon.submit("send_mail")
    watched.wait("2 requests are waiting")
    assert watched.complaints and watched.page.evaluate("window.streams.length") == 1


def test_who_is_logged_out_is_not_told_of_a_lost_connection(alice, daemon):
    desk = daemon.server.desk
    desk.log_out(desk.find_session(alice.context.cookies()[0]["value"]).identity).result()
    daemon.submit("send_mail")  # the stream ends with the next event
    alice.wait("Your login has ended.")
    alice.page.wait_for_timeout(500)
    assert alice.page.text_content("#connection") == ""

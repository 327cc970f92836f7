"""People with and without browsers, in front of a server that lies, and the common parts of the rows of the table of lies."""

import collections
import itertools
import json
import pathlib
import re
import time

import pytest
from audit import Audit
from browser import Tab
from client import RequestFailed
from conftest import PATIENCE, wait_for
from device import Device
from told_lists import Ghost
from words import SignKey

TABLE = json.loads((pathlib.Path(__file__).parents[2] / "Vectors/lies.json").read_text())
LIES = {row["n"]: row for row in TABLE["rows"]}
ROWS = []
NUMBERS = itertools.count(1)
# Browsers that are opened once, and their audits.
POOL, WATCHES = [], []


# Collects everything that the page has told the person, since notices disappear.
LISTENER = """
addEventListener('DOMContentLoaded', () => {
  window.conclaveTold = [];
  const read = () => {
    for (const node of document.querySelectorAll('.notice, .warning, [role=alert], [data-warning]')) {
      const text = node.checkVisibility() ? node.innerText.trim() : '';
      if (text && !window.conclaveTold.includes(text)) window.conclaveTold.push(text);
    }
  };
  new MutationObserver(read).observe(document, { subtree: true, childList: true, characterData: true });
});
"""
# Notices that are not warnings: people join and leave.
NEWS = re.compile(r"^(\S+ (joined|left|is back|declined|did not answer|lost the connection|could not connect|has a new device.*)|You have (signed in on )?a new device.*)$")


def row(number, *variants):
    """A function that tells the lie of a row, given the stage, and the variant if there are several. It returns the tabs that must warn."""

    def added(function):
        for variant in variants or [None]:
            name = f"{number}" if variant is None else f"{number}-{variant}"
            ROWS.append(pytest.param(number, function, variant, id=name))
        return function

    return added


class Member(Device):
    """Somebody without a browser but with real keys, who joins and leaves so that the keys change."""

    def __init__(self, server, proxy, user, device="phone"):
        self.ghost = Ghost(user, device)
        # The proxy remembers the devices that register through it.
        through = collections.namedtuple("Through", "stomp_port state")(proxy.stomp_port, server.state)
        super().__init__(through, user, device)

    def make_keys(self):
        self.wrap, self.sign = self.ghost.wrap.spki, self.ghost.sign.spki
        self.sign_key = SignKey(private=self.ghost.sign.private)

    def join_body(self, call):
        entry = self.ghost.entry(call, 1)
        return {name: entry[name] for name in ("joinId", "joinKey")}

    def come(self, call):
        try:
            self.enter(call, "accept", self.join_body(call))
        except RequestFailed:
            # It rings only for 30 s.
            self.enter(call, "join", self.join_body(call))

    def go(self, call):
        self.call(call, "leave")
        self.ghost.begin_stay()

    def learn(self, call, epoch):
        """Opens the envelope with an epoch's secret."""
        self.ghost.open(call, self.event("keys.envelope", 10, lambda body: (body["call"], body["epoch"]) == (call, epoch)))


class Stage:
    """Alice and Bob in browsers, others without, in front of a server that lies."""

    def __init__(self, server, proxy, number):
        self.server, self.proxy, self.number = server, proxy, number
        self.audit, self.tabs, self.members = Audit(), [], []
        # The tabs whose list has the ghost: it may hear them. How long a warning may take. Whether each lie must have been told.
        self.hearers, self.wait, self.optional = set(), 6, False

    def user(self, name):
        return f"{name}{self.number}".lower()

    def tab(self, name, view="#lobby"):
        """A browser from the pool. Its earlier data is stored under the origin of another proxy."""
        if len(self.tabs) == len(POOL):
            POOL.append(Tab("data:text/html,<input aria-label='Your name'><button>Sign in</button>", name, [LISTENER], view="body"))
            WATCHES.append(self.audit.watch(POOL[-1]))
        tab = POOL[len(self.tabs)]
        self.tabs.append(tab)
        tab.name = f"{name}{self.number}"
        tab.user = tab.name.lower()
        for watch in WATCHES:
            watch.audit = self.audit
        tab.driver.get(self.proxy.url)
        tab.fill("Your name", tab.name)
        tab.press("Sign in")
        tab.sees(view)
        return tab

    def member(self, name, device="phone"):
        member = Member(self.server, self.proxy, self.user(name), device)
        self.members.append(member)
        return member

    def watch(self, tab):
        return WATCHES[POOL.index(tab)]

    def in_page(self, tab, module, body, *values):
        """Runs JavaScript in a page, with the exports of one of its modules as `exports`, and `values`: a member may run any client."""
        script = f"""
            const [name, values, done] = arguments;
            const url = performance.getEntriesByType('resource').map((entry) => entry.name).find((each) => each.endsWith(`/${{name}}`));
            import(url).then(async (exports) => {{ {body} }}).then(() => done(), (error) => done(String(error)));
        """
        failure = tab.driver.execute_async_script(script, module, values)
        assert failure is None, failure

    def close(self):
        for watch in WATCHES:
            watch.worker_script = ""
        for member in self.members:
            member.close()
        for tab in self.tabs:
            tab.driver.get("about:blank")

    def call(self, members=("carol",)):
        """Alice calls Bob, who answers, and the members, who do not answer yet; the two hear each other under epoch 2."""
        self.ring(members)
        self.answer()
        self.proxy.sees("event", "keys.switch", user=self.bob.user, where=lambda body: body["epoch"] >= 2)
        wait_for(self.both_open, 10, "Alice and Bob open each other's frames under epoch 2")
        return self.id

    def answer(self):
        # Sound only: it tests the same at a tenth of the cost.
        self.bob.press("Accept with audio")

    def people(self):
        if not self.tabs:
            self.alice, self.bob = self.tab("Alice"), self.tab("Bob")

    def ring(self, members=()):
        self.people()
        self.others = [self.member(name) for name in members]
        self.alice.fill("People", ",".join([self.bob.name, *[member.user for member in self.others]]))
        self.alice.press("Audio call")
        self.alice.sees("#call")
        self.id = self.proxy.seen("request", "calls/start", self.alice.user)[-1][3]["id"]

    def both_open(self, since=0):
        users = {opened.user for opened in self.audit.opened if opened.at >= since}
        return {self.alice.user, self.bob.user} <= users and all(2 in self.audit.epochs(user) for user in users)

    @property
    def bob_device(self):
        return next(link.device for link in self.proxy.links if link.user == self.bob.user)

    @property
    def newest(self):
        """The newest epoch that the server has announced to anybody."""
        return max(body["epoch"] for _, _, _, body in self.proxy.seen("event", "keys.rotate"))

    def lie(self, *parameters, **more):
        return self.proxy.lie(*parameters, **more)

    def come(self, member=0):
        """A member joins, which is a ratchet. Returns the epoch, once the server has switched to it or given up waiting."""
        self.others[member].come(self.id)
        return self.turned()

    def go(self, member=0):
        """A member leaves, which makes a fresh epoch."""
        self.others[member].go(self.id)
        return self.turned()

    def turned(self):
        before = getattr(self, "last", 2)
        told = lambda body: body["epoch"] > before
        self.last = self.proxy.sees("event", "keys.switch", user=self.alice.user, where=told)["epoch"]
        return self.last

    # Assertions

    def silent_under(self, tab, epoch, seconds=3.0, since=0):
        """Asserts that the tab seals nothing under an epoch in this time, and until somebody else has sealed half as much sound: a busy machine gets longer."""
        began, start = time.time() * 1000, time.monotonic()
        others = {self.alice.user, self.bob.user} - {tab.user}

        def is_over():
            passed = time.monotonic() - start
            sealed = max((len(self.audit.frames(user, began)) for user in others), default=0)
            return passed > seconds and (sealed == 0 or sealed >= 25 * seconds or passed > seconds * PATIENCE)

        while not is_over():
            assert epoch % 256 not in self.audit.epochs(tab.user, since), f"{tab.user} sends under epoch {epoch}"
            time.sleep(0.1)

    def stops(self, tab, seconds=5.0):
        """Waits until the tab stops sending, or begins again as another participant."""
        rejoined = lambda: self.proxy.seen("request", f"calls/{self.id}/rejoin", tab.user)
        wait_for(lambda: rejoined() or not self.audit.is_sending(tab.user), seconds, f"{tab.user} stops sending")

    def goes_on(self, *tabs, seconds=10):
        """Waits until each of these opens a frame that another one seals from now on."""
        since = time.time() * 1000
        for tab in tabs:

            def is_heard():
                sealed = {(frame.key, frame.iv) for frame in self.audit.frames(tab.user, since)}
                return any((opened.key, opened.iv) in sealed for opened in self.audit.opened[-400:] if opened.user != tab.user)

            wait_for(is_heard, seconds, f"{tab.user} is heard")

    def handled(self, marks):
        """Waits until the client has acknowledged or refused the told events: by then it has acted on them."""
        answers = lambda: {mark for kind in ("ACK", "NACK") for _, _, mark, _ in self.proxy.seen(kind)}
        wait_for(lambda: answers() >= set(marks), 10, "the told events are handled")

    def seals_on(self, tab, frames=150):
        """Waits until the tab has sealed this many more frames, about 3 s of sound, so that other devices can act meanwhile."""
        since = time.time() * 1000
        wait_for(lambda: len(self.audit.frames(tab.user, since)) >= frames, 20, f"{tab.user} keeps sending")

    def told(self, tab):
        return [text for text in tab.driver.execute_script("return window.conclaveTold ?? []") if not NEWS.match(text)]

    def warns(self, tab, seconds):
        wait_for(lambda: self.told(tab), seconds, f"{tab.user} is warned")

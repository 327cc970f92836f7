"""Lies about frames and messages, by a server and a member who together know the epoch's secret. Every function returns the tabs that must warn.

Frames are forged in the worker, between the network and the client's code: an honest SFU would drop them, and media does not pass the proxy.
"""

import base64
import json
import os
import re
import time

from audit import sframe_numbers
from conftest import wait_for
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from lies_about_keys import say
from lying_stage import row
from told_lists import b64, layouts

# In the worker, between a slot's frames from the network and the client's code: `inject` adds a frame, `onSlots` is a frame to add after the next change of
# slots, `doubles` repeats each frame in all audio slots. `opened` has the added frames that the client accepted.
NETWORK = """
(() => {
  let listen = self.addEventListener;
  const slots = new Map();
  const network = { slots, doubles: false, doubled: 0, twice: 0, injected: 0, opened: [], onSlots: undefined };
  self.conclaveNetwork = network;
  let options;
  const hooked = (type, handler, ...rest) => {
    const hooks = {
      rtctransform: (event) => {
        options = event.transformer.options;
        handler(event);
        options = undefined;
      },
      message: (event) => {
        handler(event);
        if (event.data.type !== 'slots' || !network.onSlots) return;
        network.inject(network.onSlots);
        network.onSlots = undefined;
      },
    };
    listen.call(self, type, hooks[type] ?? handler, ...rest);
    // The audit's own hook takes itself away.
    if (self.addEventListener !== hooked) listen = self.addEventListener;
    self.addEventListener = hooked;
  };
  self.addEventListener = hooked;
  self.TransformStream = class extends TransformStream {
    constructor(own) {
      const slot = options?.operation === 'open' && { ...options, transform: own.transform, frames: 0 };
      if (slot) slots.set(slot.name, slot);
      super(slot ? { transform: (frame, controller) => arrives(slot, frame, controller) } : own);
    }
  };
  const copyOf = ({ data, type }, metadata) => ({ data: data.slice(0), type, getMetadata: () => metadata });
  network.audio = () => [...slots.values()].filter(({ isVideo }) => !isVideo);
  function arrives(slot, frame, controller) {
    const metadata = frame.getMetadata();
    slot.frames += 1;
    slot.last = copyOf(frame, metadata);
    if (!network.doubles || slot.isVideo) return slot.transform(frame, controller);
    let passed = 0;
    const pass = () => {
      passed += 1;
      if (passed > 1) network.twice += 1;
    };
    const copies = network.audio().map((other) => [other, copyOf(frame, metadata)]);
    network.doubled += 1;
    const enqueue = (opened) => {
      pass();
      controller.enqueue(opened);
    };
    return Promise.all([slot.transform(frame, { enqueue }), ...copies.map(([other, copy]) => other.transform(copy, { enqueue: pass }))]);
  }
  // Into the slot that somebody is heard in.
  network.heard = () => network.audio().sort((a, b) => b.frames - a.frames)[0];
  network.inject = (base64) => {
    const slot = network.heard();
    const data = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)).buffer;
    network.injected += 1;
    slot.transform(copyOf({ data, type: slot.last.type }, slot.last.getMetadata()), {
      enqueue: (frame) => network.opened.push(new TextDecoder().decode(frame.data)),
    });
  };
  network.lastFrame = () => btoa(String.fromCharCode(...new Uint8Array(network.heard().last.data)));
})();
"""


def in_a_call_with_carol(stage):
    """Alice hears Bob, behind a network that lies to her, and Carol has the epoch's secret. Returns Carol and the epoch."""
    stage.people()
    stage.watch(stage.alice).worker_script = NETWORK
    stage.call()
    epoch = stage.come()
    [carol] = stage.others
    carol.learn(stage.id, epoch)
    wait_for(lambda: epoch in stage.audit.epochs(stage.bob.user), 10, "Bob sends under the epoch that Carol has")
    stage.goes_on(stage.bob)
    return carol, epoch


def sender_of(stage, member, user, epoch):
    """The values of a member that every other member can derive: the entry and its SFrame base key."""
    facts = stage.proxy.lists.chains[member.user, member.device, stage.id].epochs[epoch]
    entry = next(entry for entry in facts["list"] if entry["user"] == user)
    join = base64.b64decode(entry["fingerprint"]), base64.b64decode(entry["joinId"])
    info = layouts.sender_info(epoch, facts["hash"], entry["participant"], *join)
    return entry, layouts.hkdf512(member.ghost.secrets[stage.id, epoch], stage.id, info, 64)


def made_up(stage, member, victim, epoch, counter, text=b"made up", n=1, metadata=b""):
    """A frame, or with n = 0 a message, under another member's key."""
    entry, base_key = sender_of(stage, member, victim.user, epoch)
    return layouts.sframe_seal(base_key, layouts.kid_of(entry["participant"], n, epoch), counter, metadata, text)


def slots_show(stage, tab, tracks):
    """The server says that the slots in which tab hears somebody show these tracks. Returns the tracks that it named before."""
    said = [*stage.proxy.seen("reply", f"calls/{stage.id}/media", tab.user), *stage.proxy.seen("event", "media.slots", tab.user)]
    newest = max((body for _, _, _, body in said), key=lambda body: body["rev"])
    stage.rev = max(getattr(stage, "rev", 0), newest["rev"]) + 1
    receive = [{"mid": mid, "track": track, "participant": int(track.split(".")[0])} for mid, track in tracks(newest["receive"])]
    assert receive, f"{tab.user} has no slot that shows somebody"
    stage.proxy.tell(tab.user, "media.slots", {"call": stage.id, "rev": stage.rev, "receive": receive, "unsupported": []})


def as_it_is(receive):
    return [(slot["mid"], slot["track"]) for slot in receive]


def of_carol(receive):
    return [(slot["mid"], "3.1") for slot in receive]


def network(stage, expression):
    return stage.watch(stage.alice).in_worker(f"conclaveNetwork.{expression}")


def nothing_passed(stage, injected):
    assert network(stage, "injected") == injected, "no frame was forged: the row tests nothing"
    assert network(stage, "opened") == [], "a forged frame is heard"


def counts_where_both_say_so(stage, carol, epoch):
    """Checks that the forgery is valid: in Bob's own slot a frame with the same key and form counts, since a member and the server together can do that."""
    counter = max(frame.counter for frame in stage.audit.frames(stage.bob.user) if frame.kid & 255 == epoch) + 500
    network(stage, f"inject('{b64(made_up(stage, carol, stage.bob, epoch, counter))}')")
    wait_for(lambda: network(stage, "opened") == ["made up"], 5, "a well-made forged frame opens")


@row(56, "in the slot of another", "by way of the server")
def a_frame_under_the_key_of_another(stage, how):
    if how == "by way of the server":
        return poses_as_carol(stage)
    carol, epoch = in_a_call_with_carol(stage)
    slots_show(stage, stage.alice, of_carol)
    # The former track counts for another second.
    time.sleep(1.2)
    for counter in (0, 2**20, 2**47):
        network(stage, f"inject('{b64(made_up(stage, carol, stage.bob, epoch, counter))}')")
    time.sleep(1.2)
    nothing_passed(stage, 3)
    slots_show(stage, stage.alice, as_it_is)
    stage.goes_on(stage.bob)
    nothing_passed(stage, 3)
    counts_where_both_say_so(stage, carol, epoch)
    return []


def poses_as_carol(stage):
    """Bob's client seals as Carol, who sends nothing, and rejoins in that way."""
    carol, epoch = in_a_call_with_carol(stage)
    entry, _ = sender_of(stage, carol, carol.user, epoch)
    pose = """
        const { postMessage } = Worker.prototype;
        const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
        Worker.prototype.postMessage = function (message, ...rest) {
          const { participant, fingerprint, joinId } = values[0];
          const other = { participant, fingerprint: bytes(fingerprint), joinId: bytes(joinId) };
          return postMessage.call(this, message.type === 'self' ? { ...message, ...other } : message, ...rest);
        };
        let call;
        const { handle } = exports.Call.prototype;
        exports.Call.prototype.handle = function (...parameters) {
          if (!call) this.rejoin();
          call = this;
          return handle.apply(this, parameters);
        };
    """
    dropped = lambda: stage.server.metric_of("conclave_media_dropped_packets_total", 'reason="sframeForeign"')
    before = dropped()
    since = time.time() * 1000
    stage.in_page(stage.bob, "call.js", pose, {name: entry[name] for name in ("participant", "fingerprint", "joinId")})
    # Any event of the call.
    stage.others[0].call(stage.id, "message", {"body": b64(b"anything")})
    posed = lambda: {frame.key for frame in stage.audit.frames(stage.bob.user, since) if frame.kid >> 16 == entry["participant"]}
    wait_for(posed, 15, "Bob seals as Carol")
    wait_for(lambda: dropped() > before + 75, 15, "the server drops what Bob sends as Carol")
    opened = {frame.key for frame in stage.audit.opened if frame.user == stage.alice.user}
    assert not opened & posed(), "Alice hears Bob as Carol"
    return []


@row(57)
def a_high_counter_in_a_slot_that_just_changed(stage):
    carol, epoch = in_a_call_with_carol(stage)
    frame = made_up(stage, carol, stage.bob, epoch, 2**47)
    network(stage, f"onSlots = '{b64(frame)}'")
    slots_show(stage, stage.alice, of_carol)
    wait_for(lambda: network(stage, "injected"), 5, "the frame arrives with the change")
    slots_show(stage, stage.alice, as_it_is)
    stage.goes_on(stage.bob)
    nothing_passed(stage, 1)
    counts_where_both_say_so(stage, carol, epoch)
    return []


@row(61)
def frames_twice_and_in_two_slots(stage):
    stage.people()
    stage.watch(stage.alice).worker_script = NETWORK
    stage.call()
    stage.proxy.tell(stage.alice.user, "media.need", {"call": stage.id, "audio": 2, "video": 0})
    wait_for(lambda: network(stage, "audio().length") >= 2, 10, "Alice has two audio slots")
    sdp = wait_for(lambda: two_slots_offered(stage), 10, "Alice offers two audio slots")
    [bobs] = {slot["track"] for slot in stage.proxy.seen("reply", f"calls/{stage.id}/media", stage.alice.user)[-1][3]["receive"]}
    slots_show(stage, stage.alice, lambda receive: [(mid, bobs) for mid in sdp])
    network(stage, "doubles = true")
    wait_for(lambda: network(stage, "doubled") > 100, 15, "frames of Bob arrive doubled")
    stage.goes_on(stage.bob)
    assert network(stage, "twice") == 0, "a frame is heard twice"
    return []


def two_slots_offered(stage):
    """The mids of the audio slots in Alice's newest answered offer."""
    offers = stage.proxy.seen("request", f"calls/{stage.id}/media", stage.alice.user)
    answers = stage.proxy.seen("reply", f"calls/{stage.id}/media", stage.alice.user)
    sections = re.split(r"^m=", offers[-1][3]["sdp"], flags=re.MULTILINE)[1:]
    slots = [section for section in sections if section.startswith("audio") and "a=recvonly" in section]
    mids = [re.search(r"^a=mid:(\S+)", section, re.MULTILINE).group(1) for section in slots]
    return mids if len(mids) >= 2 and len(answers) == len(offers) else None


def sends_in_private(stage, tab, participants, text):
    """The page has no button for it yet."""
    stage.in_page(
        tab,
        "call.js",
        """
        const { send } = exports.Call.prototype;
        exports.Call.prototype.send = function (message) {
          exports.Call.prototype.send = send;
          return this.send(message, { to: values[0] });
        };
        """,
        participants,
    )
    say(tab, text)


def number_of(stage, member, user, epoch):
    return sender_of(stage, member, user, epoch)[0]["participant"]


class Private:
    """A private message of Bob's that Carol got, opened."""

    def __init__(self, stage, carol, epoch, body):
        self.sframe = base64.b64decode(body)
        assert self.sframe[0] == 1, "the message is not private"
        kid, counter = sframe_numbers(self.sframe[1:])
        entry, base_key = sender_of(stage, carol, stage.bob.user, epoch)
        assert kid == layouts.kid_of(entry["participant"], 0, epoch)
        content = layouts.sframe_open(base_key, kid, counter, b"private", self.sframe[1:])
        rows = [content[1 + i * 117 : 1 + (i + 1) * 117] for i in range(content[0])]
        self.wraps, self.sealed = content[: 1 + content[0] * 117], content[1 + content[0] * 117 :]
        own = number_of(stage, carol, carol.user, epoch)
        numbers = b"".join(row[:4] for row in rows)
        wrap = next(row[4:] for row in rows if row[:4] == layouts.u32(own))
        list_hash = stage.proxy.lists.chains[carol.user, carol.device, stage.id].epochs[epoch]["hash"]
        info = layouts.message_info(stage.id, list_hash, entry["participant"], own)
        sender = base64.b64decode(entry["joinKey"]["publicKey"])[-65:]
        self.key = layouts.hpke_open(carol.ghost.join, info, layouts.sha256(numbers) + layouts.sha256(self.sealed), wrap, sender)
        self.text = json.loads(layouts.unpadded(AESGCM(self.key).decrypt(bytes(12), self.sealed, b"")))["text"]


@row(63)
def a_private_message_is_handed_to_all(stage):
    carol, epoch = in_a_call_with_carol(stage)
    stage.lie("request", "calls/*/message", lambda body, _: {"body": body["body"]}, to=stage.bob.user)
    sends_in_private(stage, stage.bob, [number_of(stage, carol, carol.user, epoch)], "for Carol alone")
    got = carol.event("message", 10)
    assert Private(stage, carol, epoch, got["body"]).text == "for Carol alone"
    stage.proxy.sees("event", "message", user=stage.alice.user)
    stage.bob.find("#chat-text", None).send_keys("for all\n")
    wait_for(lambda: "for all" in stage.alice.text("body"), 5, "Alice gets the message to all")
    stage.alice.press("Chat (1)")
    assert "for Carol alone" not in stage.alice.text("#chat-list")
    return []


@row(64)
def another_text_under_the_wraps_of_a_private_message(stage):
    carol, epoch = in_a_call_with_carol(stage)
    numbers = [number_of(stage, carol, user, epoch) for user in (stage.alice.user, carol.user)]
    stage.alice.press("Chat")
    sends_in_private(stage, stage.bob, numbers, "for two of you")
    private = Private(stage, carol, epoch, carol.event("message", 10)["body"])
    assert private.text == "for two of you"
    wait_for(lambda: "for two of you" in stage.alice.text("#chat-list"), 5, "Alice reads the message for her")
    bob = number_of(stage, carol, stage.bob.user, epoch)

    def told(kind, counter, metadata, content):
        sframe = made_up(stage, carol, stage.bob, epoch, counter, content, 0, metadata)
        stage.handled(stage.proxy.tell(stage.alice.user, "message", {"call": stage.id, "from": bob, "body": b64(kind + sframe)}))

    other = AESGCM(private.key).encrypt(bytes(12), layouts.padded(b'{"text":"another text"}'), b"")
    told(b"\1", 1_000, b"private", private.wraps + other)
    # The forgery itself is valid: nothing but the epoch's key proves the sender of a message to all.
    told(b"\0", 1_001, b"message", layouts.padded(b'{"text":"for all, made up"}'))
    wait_for(lambda: "for all, made up" in stage.alice.text("#chat-list"), 5, "Alice reads the forged message to all")
    assert "another text" not in stage.alice.text("#chat-list")
    return []


class Renumbered:
    """From an epoch on, Alice and Bob are told the server's epochs with numbers that are 255 higher, and made-up links across the gap: the first then has the
    same low byte as the epoch before it."""

    AHEAD = 255

    def __init__(self, stage, first):
        self.stage, self.first = stage, first
        chain = stage.proxy.lists.chains[stage.bob.user, stage.bob_device, stage.id]
        self.links, self.last = [], chain.epochs[first - 1]["hash"]
        for epoch in range(first, first + self.AHEAD):
            roster = os.urandom(32)
            self.last = layouts.sha256(layouts.list_bytes(stage.id, epoch, self.last, roster))
            self.links.append({"epoch": epoch, "roster": b64(roster)})
        for tab in (stage.alice, stage.bob):
            stage.lie("event", "keys.*", self.down, to=tab.user)
            stage.lie("reply", "calls/*", self.down, to=tab.user)
            stage.lie("request", "calls/*", self.up, to=tab.user)

    def hash_of(self, link, epoch):
        """The hash of an epoch's list; before the first epoch, that of the last made-up link."""
        if epoch < self.first:
            return self.last
        roster = self.stage.proxy.lists.chain(link, self.stage.id).epochs[epoch]["roster"]
        before = self.hash_of(link, epoch - 1)
        return layouts.sha256(layouts.list_bytes(self.stage.id, epoch + self.AHEAD, before, roster))

    def down(self, body, link):
        epoch = body.get("epoch", 0)
        if epoch < self.first:
            return body
        told = {**body, "epoch": epoch + self.AHEAD}
        if "listHash" in body:
            told |= {"previous": b64(self.hash_of(link, epoch - 1)), "listHash": b64(self.hash_of(link, epoch))}
        if "links" in body:
            is_gap = any(item["epoch"] == self.first for item in body["links"])
            told["links"] = (self.links if is_gap else []) + [{**item, "epoch": item["epoch"] + self.AHEAD} for item in body["links"]]
        return told

    def up(self, body, _):
        numbers = {name: body[name] - self.AHEAD for name in ("epoch", "since") if body.get(name, 0) >= self.first + self.AHEAD}
        if "envelopes" in body:
            numbers["envelopes"] = [self.up(envelope, _) for envelope in body["envelopes"]]
        return {**body, **numbers}


@row(65)
def a_frame_of_an_epoch_with_the_same_low_byte(stage):
    in_a_call_with_carol(stage)
    frame = network(stage, "lastFrame()")
    epoch = sframe_numbers(base64.b64decode(frame))[0] & 255
    assert epoch == stage.last
    Renumbered(stage, epoch + 1)
    before = {sealed.key for sealed in stage.audit.frames(stage.bob.user)}
    stage.go()
    stage.proxy.sees("request", f"calls/{stage.id}/keys", user=stage.alice.user, where=lambda body: body["epoch"] == epoch + 256)
    fresh = lambda: {sealed.key for sealed in stage.audit.frames(stage.bob.user) if sealed.kid & 255 == epoch} - before
    wait_for(fresh, 10, "Bob sends under an epoch with the same low byte")
    stage.goes_on(stage.alice, stage.bob)
    network(stage, f"inject('{frame}')")
    stage.goes_on(stage.bob)
    nothing_passed(stage, 1)
    return []

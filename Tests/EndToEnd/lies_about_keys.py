"""Lies about envelopes, switches, people, rings and frames. Every function returns the tabs that must warn."""

import base64
import copy
import os
import time
import uuid

import told_lists
from conftest import wait_for
from lies_about_lists import with_ghost
from lying_proxy import Failure
from lying_stage import row
from told_lists import Ghost, b64, in_order, layouts


def altered(envelope, how, stage):
    key = Ghost("zed").sign
    changes = {
        "epoch": {"epoch": envelope["epoch"] + 1},
        "recipient": {"to": {"user": stage.alice.user, "device": envelope["to"]["device"]}},
        "key": {"key": b64(os.urandom(32))},
        "call": {"call": str(uuid.uuid4())},
        "unsigned": {"signature": "", "sigAlg": ""},
        "other signer": {"signature": b64(key.sign(b"anything"))},
    }
    return {**envelope, **changes[how]}


@row(27, "epoch", "recipient", "key")
@row(28, "unsigned", "other signer")
def an_envelope_that_is_not_for_this(stage, how):
    stage.call()
    stage.come()
    stage.lie("event", "keys.envelope", lambda body, _: altered(body, how, stage), to=stage.bob.user)
    stage.silent_under(stage.bob, stage.go(), 4)
    return []


@row(28, "own secret")
def a_secret_of_the_servers_own(stage, _):
    stage.call()
    stage.come()
    ghost = stage.proxy.lists.ghost("zed")

    def sealed_anew(body, link):
        chain = stage.proxy.lists.chain(link, stage.id)
        own = next(entry for entry in chain.real if entry["user"] == link.user)
        spki = base64.b64decode(own["joinKey"]["publicKey"])
        secret, key = os.urandom(32), told_lists.hashlib.sha256(spki).digest()
        sealed = layouts.hpke_seal(Ghost("zed").join, spki[-65:], b"conclave-envelope-v2", b"", secret)
        names = (body["from"]["user"], body["from"]["device"]), (body["to"]["user"], body["to"]["device"])
        list_hash = chain.epochs[body["epoch"]]["hash"]
        signed = ghost.sign.sign(layouts.transcript_of(stage.id, body["epoch"], *names, layouts.HPKE, key, sealed, list_hash))
        ghost.secrets[stage.id, body["epoch"]] = secret
        return {**body, "alg": layouts.HPKE, "key": b64(key), "ciphertext": b64(sealed), "encryptedAESKey": b64(sealed), "signature": b64(signed)}

    stage.lie("event", "keys.envelope", sealed_anew, to=stage.bob.user)
    stage.silent_under(stage.bob, stage.go(), 4)
    return []


@row(29)
def an_envelope_again(stage):
    stage.call()
    stage.come()
    epoch = stage.go()
    envelope = stage.proxy.sees("event", "keys.envelope", user=stage.bob.user, where=lambda body: body["epoch"] == epoch)
    wait_for(lambda: epoch in stage.audit.epochs(stage.bob.user), 10, "Bob sends under the fresh epoch")
    for _ in range(3):
        stage.proxy.tell(stage.bob.user, "keys.envelope", envelope)
    stage.goes_on(stage.alice, stage.bob)
    return []


@row(32)
def envelopes_are_withheld(stage):
    stage.call()
    stage.come()
    stage.lie("event", "keys.envelope", lambda body, _: None, to=stage.bob.user)
    epoch = stage.go()
    asked = lambda: len(stage.proxy.seen("request", f"calls/{stage.id}/keys/request", stage.bob.user)) >= 3
    wait_for(asked, 15, "Bob asks three times")
    stage.silent_under(stage.bob, epoch)
    return [stage.bob]


@row(33)
def the_switch_is_withheld_after_somebody_left(stage):
    stage.call()
    former = stage.come()
    wait_for(lambda: former in stage.audit.epochs(stage.bob.user), 10, "Bob sends under the key that Carol has")
    stage.lie("event", "keys.switch", lambda body, _: None, to=stage.bob.user)
    stage.lie("reply", "calls/*/state", lambda body, _: {**body, "epoch": 2}, to=stage.bob.user)
    before = stage.newest
    stage.others[0].go(stage.id)
    epoch = stage.proxy.sees("event", "keys.rotate", user=stage.bob.user, where=lambda body: body["epoch"] > before)["epoch"]
    wait_for(lambda: epoch in stage.audit.epochs(stage.bob.user), 8, "Bob switches by himself")
    stage.optional = True
    return []


@row(34)
def switches_to_unknown_and_lower_epochs(stage):
    stage.call()
    epoch = stage.come()
    wait_for(lambda: epoch in stage.audit.epochs(stage.bob.user), 10, "Bob sends under the new epoch")
    lower = stage.lie("reply", "calls/*/state", lambda body, _: {**body, "epoch": 1}, to=stage.bob.user)
    marks = []
    for number in (epoch - 1, 1, epoch, 99, 2**32 + epoch, 0, -1):
        marks += stage.proxy.tell(stage.bob.user, "keys.switch", {"call": stage.id, "epoch": number})
    marks += stage.proxy.tell(stage.bob.user, "call.state", {**state_of(stage), "epoch": 1})
    stage.handled(marks)
    since = time.time() * 1000
    stage.seals_on(stage.bob)
    assert stage.audit.epochs(stage.bob.user, since) == {epoch}
    stage.goes_on(stage.alice, stage.bob)
    lower.told = 1
    return []


@row(73)
def an_old_state_is_played_again(stage):
    stage.call()
    stage.come()
    # Bob is not in it: he would rejoin.
    old = state_of(stage)
    old = {**old, "members": [member for member in old["members"] if member["user"] != stage.bob.user]}
    stage.go()
    marks = stage.proxy.tell(stage.bob.user, "call.state", old)
    for rev in (-1, 1.5, "9"):
        marks += stage.proxy.tell(stage.bob.user, "call.state", {**old, "rev": rev})
    stage.handled(marks)
    stage.seals_on(stage.bob)
    stage.goes_on(stage.alice, stage.bob)
    assert not stage.proxy.seen("request", f"calls/{stage.id}/rejoin", stage.bob.user)
    return []


def state_of(stage):
    return {**stage.others[0].call(stage.id, "state"), "call": stage.id}


def stays_in_epoch_1(stage, tabs):
    for tab in tabs:
        stage.lie("event", "keys.rotate", lambda body, _: None, to=tab.user)
        stage.lie("event", "keys.switch", lambda body, _: None, to=tab.user).told = 1
        stage.lie("reply", "calls/*/keys/list", lambda body, _: Failure("internal"), to=tab.user).told = 1


@row(36)
def the_call_stays_in_epoch_1(stage):
    stage.ring()
    stays_in_epoch_1(stage, (stage.alice, stage.bob))
    stage.answer()
    wait_for(lambda: stage.audit.is_sending(stage.alice.user), 10, "Alice sends under epoch 1")
    for tab in (stage.alice, stage.bob):
        wait_for(lambda: not stage.audit.is_sending(tab.user), 20, f"{tab.user} stops sending under epoch 1")
    return []


def shown_ghost(stage, number=77):
    """A device of zed is on everybody's list, the same for all."""
    ghost, change = with_ghost(stage, "zed", number)
    for tab in (stage.alice, stage.bob):
        stage.proxy.lists.lie_to(tab.user, change)
        stage.hearers.add(tab.user)
    return ghost


@row(38)
def listed_without_a_member(stage):
    stage.call()
    shown_ghost(stage)
    stage.come()
    stage.bob.sees("[data-user=zed]")
    for tab in (stage.alice, stage.bob):
        wait_for(lambda: not stage.audit.is_sending(tab.user), 20, f"{tab.user} stops sending to somebody unseen")
    return [stage.alice, stage.bob]


@row(37)
def a_listed_ghost_comes_and_goes(stage):
    stage.call()
    shown_ghost(stage)
    stage.come()
    stopped = lambda: not stage.audit.is_sending(stage.bob.user)
    wait_for(stopped, 20, "Bob stops")
    member = {"call": stage.id, "user": "zed", "name": "Zed", "state": "joined", "cause": "joined"}
    participant = {"participant": 77, "device": "ghost", "joinId": None, "connected": True, "held": False, "tracks": []}
    participant["joinId"] = b64(stage.proxy.lists.ghosts[0].join_id)
    # The lie is in the timing: the ghost is a member for less than the 5 s after which a check would detect it.
    for _ in range(2):
        stage.proxy.tell(stage.bob.user, "call.member", {**member, "participants": [participant]})
        time.sleep(4)
        stage.proxy.tell(stage.bob.user, "call.member", {**member, "participants": [], "state": "left", "cause": "left"})
        time.sleep(4)
    wait_for(stopped, 25, "the second stop holds")
    return [stage.bob]


def tell_of_ghost(stage, tab, ghost, **lies):
    """Says that the ghost is a participant; `lies` replaces facts about its member, `device` its device."""
    seat = {"participant": 77, "device": lies.pop("device", "ghost"), "joinId": b64(ghost.join_id), "connected": True, "held": False, "tracks": []}
    member = {"call": stage.id, "user": "zed", "name": "Zed", "state": "joined", "cause": "joined", "participants": [seat]}
    stage.proxy.tell(tab.user, "call.member", member | lies)


@row(332)
def a_name_that_is_no_text(stage):
    stage.call()
    ghost = shown_ghost(stage)
    for tab in (stage.alice, stage.bob):
        tell_of_ghost(stage, tab, ghost, name=5)
    stage.come()
    for tab in (stage.alice, stage.bob):
        tab.sees(".tile[data-user=zed][data-doubt=stranger]")
        tab.sees(f".tile[data-user={stage.user('carol')}]")  # the page keeps drawing
        wait_for(lambda: not stage.audit.is_sending(tab.user), 20, f"{tab.user} stops sending to somebody unseen")
    return [stage.alice, stage.bob]


@row(334)
def a_listed_number_with_another_device(stage):
    stage.call()
    ghost = shown_ghost(stage)
    stage.come()
    for tab in (stage.alice, stage.bob):
        tab.sees(".tile[data-user=zed]")
        tell_of_ghost(stage, tab, ghost, device="other")
        tab.sees(".tile[data-user=zed][data-doubt=stranger]")
        assert "cannot hear" not in tab.text(".tile[data-user=zed]")
        wait_for(lambda: not stage.audit.is_sending(tab.user), 20, f"{tab.user} stops sending")
    return [stage.alice, stage.bob]


@row(39)
def left_but_listed(stage):
    stage.call()
    stage.come()
    chain = stage.proxy.lists.chains[stage.bob.user, stage.bob_device, stage.id]
    carol = copy.deepcopy(next(entry for entry in chain.real if entry["user"] == stage.user("carol")))
    change = lambda entries, _: in_order([*[entry for entry in entries if entry["user"] != carol["user"]], carol])
    for tab in (stage.alice, stage.bob):
        stage.proxy.lists.lie_to(tab.user, change)
    stage.others[0].go(stage.id)
    stage.bob.sees(f"[data-user={carol['user']}]", 10)
    wait_for(lambda: not stage.audit.is_sending(stage.bob.user), 30, "Bob stops sending to somebody who has left")
    return [stage.bob]


@row(40)
def joined_and_never_listed(stage):
    stage.call()
    for tab in (stage.alice, stage.bob):
        stage.proxy.lists.lie_to(tab.user, lambda entries, _: [entry for entry in entries if entry["user"] != stage.user("carol")])
    stage.others[0].come(stage.id)
    before = stage.newest
    stage.proxy.sees("event", "keys.rotate", user=stage.bob.user, where=lambda body: body["epoch"] >= max(3, before))
    stage.bob.sees(f"[data-user={stage.user('carol')}]")
    handed = [body for _, _, _, body in stage.proxy.seen("request", f"calls/{stage.id}/keys")]
    assert stage.user("carol") not in {envelope["to"]["user"] for body in handed for envelope in body["envelopes"] if body["epoch"] > 1}
    return []


@row(41, "xor", "beyond")
def false_confirmations(stage, how):
    stage.call()

    def change(body, _):
        for bucket in body["buckets"]:
            if how == "xor":
                bucket["tag"] = b64(os.urandom(16))
            else:
                bucket["who"] = b64(b"\xff" * 8)
        return body

    stage.lie("event", "keys.confirmed", change, to=stage.bob.user)
    stage.come()
    stage.proxy.sees("request", f"calls/{stage.id}/keys/confirmations", 20, stage.bob.user)
    stage.wait = 20
    return [stage.bob]


@row(42)
def confirmations_are_dropped(stage):
    stage.ring()
    lie = stage.lie("event", "keys.confirmed", lambda body, _: None)
    stage.answer()
    wait_for(stage.both_open, 15, "Alice and Bob hear each other")
    wait_for(lambda: lie.told >= 2, 15, "confirmations are withheld from both")
    stage.seals_on(stage.bob)
    stage.goes_on(stage.alice, stage.bob)
    return []


@row(43)
def a_wrong_tag_of_a_member(stage):
    stage.call()
    epoch = stage.come()
    stage.others[0].call(stage.id, "keys/confirm", {"epoch": epoch, "tag": b64(os.urandom(16))})
    stage.proxy.sees("request", f"calls/{stage.id}/keys/confirmations", 20, stage.bob.user)
    stage.wait = 20
    return [stage.bob]


@row(44, "another call", "used before", "a day old")
def a_ring_that_is_old(stage, how):
    stage.people()
    if how == "a day old":
        stage.alice.driver.execute_script("const now = Date.now; Date.now = () => now() - 86_400_000")
    else:
        ring_again(stage, how)
    stays_in_epoch_1(stage, [stage.bob])
    since = time.time() * 1000
    if how == "used before":
        stage.alice.ring(stage.bob.name)
    else:
        stage.ring()
    stage.answer()
    stage.bob.sees(f".tile[data-user={stage.alice.user}]")
    wait_for(lambda: stage.audit.is_sending(stage.alice.user), 10, "Alice sends")
    stage.silent_under(stage.bob, 1, since=since)
    return []


def ring_again(stage, how):
    """Bob answers a ring and leaves. The next ring has the same list and envelope."""
    stage.ring(("carol",) if how == "used before" else ())
    stage.answer()
    ring = stage.proxy.sees("event", "call.ring", user=stage.bob.user)
    stage.proxy.sees("event", "keys.switch", user=stage.bob.user)
    if how == "used before":
        stage.others[0].come(stage.id)
    stage.bob.leave()
    replayed = {name: ring[name] for name in ("list", "envelope")}
    stage.lie("event", "call.ring", lambda body, _: {**body, **replayed}, to=stage.bob.user)


@row(45, "two joins", "other signer")
def a_ring_with_a_list_that_does_not_fit(stage, how):
    ghost = stage.proxy.lists.ghost("zed")

    def change(body, _):
        if "list" in body:
            if how == "two joins":
                body["list"] = in_order([*body["list"], ghost.entry(body["call"], 2)])
            else:
                body["from"] = stage.user("carol")
        return body

    stage.lie("event", "call.ring", change, to=stage.user("bob"))
    stage.ring(("carol",))
    stage.answer()
    stage.proxy.sees("event", "keys.switch", user=stage.bob.user)
    assert 1 not in stage.audit.epochs(stage.bob.user), "Bob uses the envelope of a ring that does not fit"
    return [stage.bob]


@row(46)
def the_reply_to_start_has_another_id(stage):
    stage.lie("reply", "calls/start", lambda body, _: {**body, "call": {**body["call"], "id": str(uuid.uuid4())}})
    alice, bob = stage.tab("Alice"), stage.tab("Bob")
    alice.fill("People", bob.name)
    alice.press("Audio call")
    wait_for(lambda: stage.told(alice) or alice.text("#call-error"), 10, "Alice is told")
    assert not alice.shown("#call") and not stage.audit.frames(alice.user)
    return [alice]


@row(67)
def the_initiator_is_given_another_number(stage):
    stage.lie("reply", "calls/start", lambda body, _: {**body, "participant": 2})
    alice, bob = stage.tab("Alice"), stage.tab("Bob")
    alice.fill("People", bob.name)
    alice.press("Audio call")
    wait_for(lambda: stage.told(alice) or alice.text("#call-error"), 10, "Alice is told")
    assert not stage.audit.frames(alice.user)
    return [alice]


@row(48, "user-name", "device")
def connected_under_another_name(stage, header):
    lie = stage.lie("connected", "", lambda headers, _: {**headers, header: "mallory"})
    stage.tab("Alice", view="body")
    wait_for(lambda: lie.told, 10, "the lie is told")
    time.sleep(2)  # a fixed wait for the absence of an event: a client that closes the connection does nothing to wait for
    assert not stage.proxy.seen("request", user="mallory"), "a request is made under another name"
    assert not stage.proxy.seen("request", "devices/register"), "the device registers though the name is another's"
    return []


@row(49, "fails", "hangs")
def devices_cannot_be_listed(stage, how):
    stage.people()
    stage.bob.only_verified()
    assert stage.bob.driver.execute_script("return document.getElementById('verified-only').checked")
    stage.lie("reply", "devices/list", lambda body, _: Failure("internal") if how == "fails" else None, to=stage.bob.user)
    stage.ring()
    stage.answer()
    wait_for(lambda: stage.audit.is_sending(stage.alice.user), 10, "Alice sends")
    stage.proxy.sees("event", "keys.rotate", user=stage.bob.user)
    stage.seals_on(stage.alice, 200)
    assert not stage.audit.frames(stage.bob.user), "Bob sends to a device that he could not look up"
    opened = {frame.key for frame in stage.audit.opened if frame.user == stage.bob.user}
    assert not opened & sealing_keys(stage, stage.alice), "Bob hears a device that he could not look up"
    return []


def sealing_keys(stage, tab):
    return {frame.key for frame in stage.audit.frames(tab.user)}


@row(58)
def slots_name_another_participant(stage):
    stage.call()
    stage.come()
    stage.goes_on(stage.alice)

    def change(body, _):
        for entry in body.get("receive", []):
            entry["participant"], entry["track"] = 3, "3." + entry["track"].split(".")[1]
        return body

    said = [*stage.proxy.seen("reply", f"calls/{stage.id}/media", stage.bob.user), *stage.proxy.seen("event", "media.slots", stage.bob.user)]
    newest = max((copy.deepcopy(body) for _, _, _, body in said), key=lambda body: body["rev"])
    assert newest["receive"], "Bob has no slot that shows Alice"
    body = {"call": stage.id, "rev": newest["rev"] + 1, "receive": newest["receive"], "unsupported": []}
    stage.proxy.tell(stage.bob.user, "media.slots", change(body, None))
    # The former track counts for another second.
    time.sleep(1.5)
    since = time.time() * 1000
    stage.seals_on(stage.alice)
    opened = {frame.key for frame in stage.audit.opened if frame.user == stage.bob.user and frame.at > since}
    assert not opened & sealing_keys(stage, stage.alice), "Alice's frames count though they are said to be Carol's"
    return []


@row(59)
def slots_come_late(stage):
    stage.ring()
    stage.proxy.delays[stage.user("bob"), "events"] = 0.5
    stage.answer()
    wait_for(stage.both_open, 20, "Alice and Bob hear each other")
    stage.goes_on(stage.alice, stage.bob)
    return []


@row(60)
def own_messages_come_back(stage):
    stage.call()
    say(stage.bob, "a word of mine")
    sent = stage.proxy.sees("request", f"calls/{stage.id}/message", user=stage.bob.user)
    own = participant_of(stage, stage.bob)
    for sender in (own, 1):
        stage.handled(stage.proxy.tell(stage.bob.user, "message", {"call": stage.id, "from": sender, **sent}))
    stage.alice.press("Chat (1)")
    send(stage.alice, "a word of alice")
    wait_for(lambda: "a word of alice" in stage.bob.text("#chat-list"), 10, "a later message is read")
    assert stage.bob.text("#chat-list").count("a word of mine") == 1
    return []


@row(62)
def a_message_from_somebody_else(stage):
    stage.call()
    lie = stage.lie("event", "message", lambda body, _: {**body, "from": 3}, to=stage.user("alice"))
    stage.come()
    say(stage.bob, "said by bob")
    wait_for(lambda: lie.told, 10, "Alice gets the message")
    stage.proxy.lies.clear()
    send(stage.bob, "said later")
    wait_for(lambda: "said later" in stage.alice.text("#chat-list"), 10, "Alice reads a later message")
    assert "said by bob" not in stage.alice.text("#chat-list")
    return []


def say(tab, text):
    tab.press("Chat")
    send(tab, text)


def send(tab, text):
    """Sends a message; the chat is open already."""
    field = tab.find("#chat-text", None)
    field.send_keys(text)
    tab.driver.execute_script("document.querySelector('#chat-form').requestSubmit()")


def participant_of(stage, tab):
    chain = next(chain for (user, _, call), chain in stage.proxy.lists.chains.items() if (user, call) == (tab.user, stage.id))
    return next(entry["participant"] for entry in chain.real if entry["user"] == tab.user)


@row(66)
def keys_are_asked_for_after_leaving(stage):
    stage.call()
    stage.come()
    stage.bob.leave()
    wait_for(lambda: not stage.audit.is_sending(stage.bob.user), 10, "Bob's last frame was sealed a second ago")
    since = time.time() * 1000
    asked = len(stage.proxy.seen("request", user=stage.bob.user))
    marks = []
    for _, _, name, body in stage.proxy.seen("event", user=stage.bob.user):
        if name.startswith("keys."):
            marks += stage.proxy.tell(stage.bob.user, name, body)
    stage.handled(marks)
    stage.seals_on(stage.alice)
    assert not stage.audit.frames(stage.bob.user, since)
    new = [path for _, _, path, _ in stage.proxy.seen("request", user=stage.bob.user)[asked:]]
    assert not [path for path in new if "/keys" in path], new
    return []


@row(68)
def a_list_out_of_order(stage):
    stage.call()
    stage.proxy.lists.lie_to(stage.bob.user, lambda entries, _: list(reversed(entries)))
    stage.lie("event", "keys.rotate", lambda body, link: whole(stage, body, link), to=stage.bob.user)
    stage.silent_under(stage.bob, stage.come())
    return [stage.bob]


def whole(stage, body, link):
    """The body with the list instead of its changes."""
    told = stage.proxy.lists.chain(link, stage.id).epochs[body["epoch"]]["list"]
    return {**{name: body[name] for name in body if name not in ("added", "removed")}, "list": told}


@row(69, "removed", "added")
def changes_that_do_not_fit(stage, which):
    stage.call()

    def change(body, link):
        if which == "removed":
            return {**body, "removed": [*body.get("removed", []), 99]}
        present = [entry for entry in stage.proxy.lists.chain(link, stage.id).real if entry["user"] == stage.alice.user]
        return {**body, "added": in_order([*body.get("added", []), *present])}

    stage.lie("event", "keys.rotate", change, to=stage.bob.user)
    stage.lie("reply", "calls/*/keys/list", lambda body, _: Failure("internal"), to=stage.bob.user).told = 1
    stage.silent_under(stage.bob, stage.come())
    return [stage.bob]


@row(70)
def keys_are_asked_for_somebody_unlisted(stage):
    stage.call()
    ghost = stage.proxy.lists.ghost("zed")
    entry = {**ghost.entry(stage.id, 77), "keys": ghost.keys}
    add = lambda body, _: {**body, "deliver": [*body["deliver"], entry]} if "deliver" in body else body
    stage.lie("event", "keys.rotate", add, to=stage.alice.user)
    stage.handled(stage.proxy.tell(stage.alice.user, "keys.request", {"call": stage.id, "epoch": 2, "to": entry}))
    stage.come()
    stage.goes_on(stage.alice, stage.bob)
    assert not ghost.secrets, "the leader gives a key to somebody who is not on the list"
    return []

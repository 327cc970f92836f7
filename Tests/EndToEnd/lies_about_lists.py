"""Lies about numbers, lists and their history. Every function returns the tabs that must warn."""

import copy
import json
import os
import time

from conftest import wait_for
from lying_stage import row
from told_lists import Ghost, b64, in_order, layouts


@row(1)
def another_number_in_the_reply_to_a_join(stage):
    stage.ring()
    stage.lie("reply", "calls/*/accept", lambda body, _: {**body, "participant": 9}, to=stage.user("bob"))
    stage.answer()
    stage.silent_under(stage.bob, 2)
    return [stage.bob]


@row(2)
def two_entries_with_one_number(stage):
    stage.call()
    numbers = {stage.user("alice"): 1, stage.user("carol"): 1}
    change = lambda entries, _: [{**entry, "participant": numbers.get(entry["user"], entry["participant"])} for entry in entries]
    stage.proxy.lists.lie_to(stage.bob.user, change)
    stage.silent_under(stage.bob, stage.come())
    return [stage.bob]


@row(3)
def numbers_of_two_others_swapped(stage):
    stage.call(("carol", "dave"))

    def change(entries, epoch):
        new = {entry["user"]: entry for entry in entries if entry["user"] in (stage.user("carol"), stage.user("dave"))}
        if len(new) == 2:
            first, second = new.values()
            first["participant"], second["participant"] = second["participant"], first["participant"]
        return entries

    stage.proxy.lists.lie_to(stage.bob.user, change)
    for member in stage.others:
        member.come(stage.id)
    stage.proxy.sees("event", "keys.switch", user=stage.bob.user, where=lambda body: body["epoch"] >= 3)
    return [stage.bob]


# Tests/WebTests has more values and more forms of a track.
@row(4, 1.5, 2**32)
def a_participant_number_that_is_none(stage, number):
    stage.call()
    number = json.loads(str(number))
    change = lambda entries, _: [{**entry, "participant": number} if entry["user"] == stage.user("carol") else entry for entry in entries]
    stage.proxy.lists.lie_to(stage.bob.user, change)
    stage.silent_under(stage.bob, stage.come())
    return []


@row(5)
def a_member_with_the_initiators_number_in_epoch_1(stage):
    stage.ring(("carol",))
    lie = stage.lie("event", "call.member", lambda body, _: with_number(body, stage.user("carol"), 1), to=stage.user("bob"))
    stage.lie("event", "keys.rotate", lambda body, _: None, to=stage.user("bob"))
    stage.answer()
    stage.others[0].come(stage.id)
    wait_for(lambda: lie.told, 10, "Bob is told about Carol")
    stage.goes_on(stage.alice, seconds=5)
    return []


def with_number(body, user, number):
    if body["user"] == user:
        for participant in body["participants"]:
            participant["participant"] = number
    return body


@row(6, "1.257", "1.1")
def a_track_that_is_not_ones_own(stage, track):
    stage.ring()

    def change(body, _):
        return {**body, "tracks": [{**entry, "track": track} for entry in body["tracks"]]}

    stage.lie("reply", "calls/*/media", change, to=stage.user("bob"))
    stage.answer()
    stage.proxy.sees("event", "keys.switch", user=stage.bob.user)
    stage.seals_on(stage.alice, 200)
    assert not stage.audit.frames(stage.bob.user), "Bob seals for a track that is not his"
    return [stage.bob]


@row(7)
def epochs_that_are_none(stage):
    stage.call()
    recorded = [entry for entry in stage.proxy.seen("event", user=stage.bob.user) if entry[2].startswith("keys.") and entry[3].get("epoch") == 2]
    assert {"keys.rotate", "keys.envelope", "keys.switch"} <= {name for _, _, name, _ in recorded}
    marks = []
    for epoch in (2**32 + 2, 2.5, 0, "3"):
        for _, _, name, body in recorded:
            marks += stage.proxy.tell(stage.bob.user, name, {**body, "epoch": epoch})
    stage.handled(marks)
    stage.seals_on(stage.bob)
    assert stage.audit.epochs(stage.bob.user) <= {1, 2}
    stage.goes_on(stage.alice, stage.bob)
    return []


@row(8)
def an_old_epoch_with_its_envelope(stage):
    stage.call()
    recorded = [entry for entry in stage.proxy.seen("event", user=stage.bob.user) if entry[2].startswith("keys.") and entry[3].get("epoch") == 2]
    epoch = stage.come()
    wait_for(lambda: epoch in stage.audit.epochs(stage.bob.user), 10, "Bob sends under the next epoch")
    marks = []
    for _, _, name, body in recorded:
        marks += stage.proxy.tell(stage.bob.user, name, body)
    stage.handled(marks)
    since = time.time() * 1000
    stage.seals_on(stage.bob)
    assert stage.audit.epochs(stage.bob.user, since) == {epoch}
    return []


@row(9)
def the_newest_epoch_with_another_list(stage):
    stage.call()
    chain = stage.proxy.lists.chains[stage.bob.user, stage.bob_device, stage.id]
    facts = chain.epochs[2]
    other = in_order(facts["list"] + [stage.proxy.lists.ghost("zed").entry(stage.id, 7)])
    changed = copy.deepcopy(chain).take(2, other, facts["previous"])
    body = {"call": stage.id, "epoch": 2, "mode": "fresh", "leader": 1, "previous": b64(facts["previous"]), "listHash": b64(changed["hash"]), "list": other}
    stage.proxy.tell(stage.bob.user, "keys.rotate", body)
    stage.stops(stage.bob)
    return [stage.bob]


@row(10)
def the_same_announcement_again(stage):
    stage.call()
    marks = []
    for _, _, name, body in stage.proxy.seen("event", "keys.rotate", stage.bob.user):
        marks += stage.proxy.tell(stage.bob.user, name, body)
    marks += stage.proxy.tell(stage.bob.user, "keys.switch", {"call": stage.id, "epoch": 2})
    stage.handled(marks)
    stage.goes_on(stage.alice, stage.bob)
    assert stage.audit.epochs(stage.bob.user) <= {1, 2}
    return []


def other_previous(stage, tab, previous_of):
    """From now on announcements to a tab continue from another list hash, and match it."""

    def change(body, link):
        chain = stage.proxy.lists.chain(link, body["call"])
        facts = chain.epochs[body["epoch"]]
        previous = previous_of(chain, body["epoch"])
        chain.take(body["epoch"], facts["list"], previous)
        return {**body, "previous": b64(previous), "listHash": b64(chain.epochs[body["epoch"]]["hash"])}

    return stage.lie("event", "keys.rotate", change, to=tab.user)


@row(11)
def a_wrong_previous_to_a_member(stage):
    stage.call()
    other_previous(stage, stage.bob, lambda chain, epoch: os.urandom(32))
    stage.come()
    stage.stops(stage.bob)
    return [stage.bob]


@row(12)
def a_wrong_previous_to_a_newcomer(stage):
    stage.call(())
    before = stage.newest
    other_previous(stage, stage.bob, lambda chain, epoch: os.urandom(32))
    since = time.time() * 1000
    stage.bob.driver.refresh()
    stage.proxy.sees("event", "keys.rotate", user=stage.bob.user, where=lambda body: body["epoch"] > before and "list" in body)
    stage.seals_on(stage.alice, 250)
    assert not stage.audit.frames(stage.bob.user, since + 1000), "Bob sends without a key that the others have"
    return [stage.bob]


@row(13)
def an_epoch_that_leaves_out_a_given_up_one(stage):
    stage.call()
    stage.lie("event", "keys.switch", lambda body, _: None, to=stage.bob.user)
    stage.come()
    stage.proxy.lies.clear()
    other_previous(stage, stage.bob, lambda chain, epoch: chain.epochs[epoch - 2]["hash"])
    stage.go()
    stage.stops(stage.bob)
    return [stage.bob]


def miss(stage, tab):
    """The next announcement does not reach a tab."""
    lie = stage.lie("event", "keys.*", lambda body, _: None, to=tab.user)
    epoch = stage.come()
    stage.proxy.sees("event", "keys.switch", user=tab.user, where=lambda body: body["epoch"] == epoch)
    stage.proxy.lies.remove(lie)
    assert lie.told
    return epoch


@row(14)
def a_gap_with_links_that_do_not_join(stage):
    stage.call(("carol", "dave"))
    miss(stage, stage.bob)
    wrong = lambda body, _: {**body, "links": [{**link, "roster": b64(os.urandom(32))} for link in body["links"]]}
    lie = stage.lie("reply", "calls/*/keys/list", wrong, to=stage.bob.user)
    stage.come(1)
    stage.stops(stage.bob)
    assert lie.told
    return [stage.bob]


def with_ghost(stage, user, number):
    """A device that the server has made up. It gets the key only if a member let its user in."""
    ghost = stage.proxy.lists.ghost(user)
    return ghost, lambda entries, _: in_order([*entries, ghost.entry(stage.id, number)])


@row(15)
def a_split_with_a_ghost_for_the_leader(stage):
    stage.call()
    ghost, change = with_ghost(stage, stage.user("carol"), 77)
    stage.proxy.lists.lie_to(stage.alice.user, change)
    epoch = stage.come()
    wait_for(lambda: epoch in stage.audit.epochs(stage.bob.user), 10, "Bob sends under the split epoch")
    assert (stage.id, epoch) in ghost.secrets, "the leader, who is shown the ghost, gives it the secret"
    stage.hearers.add(stage.alice.user)
    stage.wait = 20
    return [stage.bob]


@row(16)
def a_split_and_then_one_list_for_all(stage):
    stage.call()
    _, change = with_ghost(stage, stage.user("carol"), 77)
    stage.proxy.lists.lie_to(stage.alice.user, change)
    epoch = stage.come()
    stage.hearers.add(stage.alice.user)
    stage.proxy.lists.changes.clear()
    bobs = next(chain for (user, _, call), chain in stage.proxy.lists.chains.items() if (user, call) == (stage.bob.user, stage.id))
    other_previous(stage, stage.alice, lambda chain, number: bobs.epochs[epoch]["hash"])
    stage.others[0].go(stage.id)
    stage.stops(stage.alice, 10)
    return [stage.alice]


@row(17)
def a_ratchet_over_a_missed_list(stage):
    stage.call(("carol", "dave"))
    _, change = with_ghost(stage, stage.user("carol"), 77)
    stage.proxy.lists.lie_to(stage.bob.user, change)
    miss(stage, stage.bob)
    stage.proxy.lists.changes.clear()
    stage.others[1].come(stage.id)
    stage.proxy.sees("request", f"calls/{stage.id}/keys/request", user=stage.bob.user)
    return []


def as_ratchet(stage, tab):
    stage.lie("event", "keys.rotate", lambda body, _: {**body, "mode": "ratchet"}, to=tab.user)
    # The tab may or may not ask for the list.
    stage.lie("reply", "calls/*/keys/list", lambda body, _: {**body, "mode": "ratchet"}, to=tab.user).told = 1


@row(18)
def a_ratchet_though_somebody_went(stage):
    stage.call()
    stage.come()
    as_ratchet(stage, stage.bob)
    stage.silent_under(stage.bob, stage.go())
    return [stage.bob]


@row(19)
def a_ratchet_right_after_a_ring(stage):
    stage.ring(("carol",))
    as_ratchet(stage, stage.bob)
    stage.answer()
    stage.proxy.sees("event", "keys.switch", user=stage.bob.user)
    stage.silent_under(stage.bob, 2)
    return [stage.bob]


@row(20, "twice", "own name")
def a_device_twice(stage, how):
    stage.call()
    ghost = Ghost(stage.bob.user, stage.bob_device)

    def change(entries, _):
        doubled = next(entry for entry in entries if entry["user"] == stage.alice.user)
        extra = {**doubled, "participant": 77} if how == "twice" else ghost.entry(stage.id, 77)
        return in_order([*entries, extra])

    stage.proxy.lists.lie_to(stage.bob.user, change)
    stage.silent_under(stage.bob, stage.come())
    return [stage.bob]


@row(21)
def a_join_id_that_swallows_the_next_entry(stage):
    stage.call(("carol", "dave"))

    def change(entries, _):
        carol, dave = (next((e for e in entries if e["user"] == stage.user(name)), None) for name in ("carol", "dave"))
        if not carol or not dave:
            return entries
        whole = layouts.entry_bytes(carol) + layouts.entry_bytes(dave)
        start = len(layouts.entry_bytes(carol)) - 48
        carol.update(joinId=b64(whole[start:-32]), joinKey=dave["joinKey"])
        return [entry for entry in entries if entry is not dave]

    stage.proxy.lists.lie_to(stage.bob.user, change)
    stage.come()
    stage.silent_under(stage.bob, stage.come(1))
    return []


@row(22, "missing", "another key")
def the_own_entry_is_missing_or_another(stage, how):
    stage.call()
    ghost = Ghost("zed")

    def change(entries, _):
        if how == "missing":
            return [entry for entry in entries if entry["user"] != stage.bob.user]
        key = ghost.entry(stage.id, 1)["joinKey"]
        return [{**entry, "joinKey": key} if entry["user"] == stage.bob.user else entry for entry in entries]

    stage.proxy.lists.lie_to(stage.bob.user, change)
    stage.silent_under(stage.bob, stage.come())
    return [stage.bob]


@row(23, "missing", "bad signature")
def the_join_key_of_another_is_missing_or_bad(stage, how):
    stage.call()
    tab = stage.bob if how == "missing" else stage.alice

    if how == "missing":
        without = lambda entry: {name: entry[name] for name in entry if name != "joinKey"}
        change = lambda entries, _: [without(entry) if entry["user"] == stage.user("carol") else entry for entry in entries]
        stage.proxy.lists.lie_to(tab.user, change)
        stage.silent_under(tab, stage.come())
        return [tab]

    def resigned(body, _):
        """The signature is from another time; the list hash does not change."""
        for entry in (entry for name in ("list", "added", "deliver") for entry in body.get(name, [])):
            if entry["user"] == stage.user("carol"):
                entry["joinKey"] = {**entry["joinKey"], "at": entry["joinKey"]["at"] + 1}
        return body

    stage.lie("event", "keys.rotate", resigned, to=tab.user)
    stage.others[0].come(stage.id)
    handed = stage.proxy.sees("request", f"calls/{stage.id}/keys", user=tab.user, where=lambda body: body["epoch"] > 2)
    assert stage.user("carol") not in {envelope["to"]["user"] for envelope in handed["envelopes"]}
    return [tab]


@row(24, "returns", "changes")
def a_removed_join_returns_or_an_entry_changes_its_number(stage, how):
    stage.call(("carol", "dave"))
    stage.come()
    chain = stage.proxy.lists.chains[stage.bob.user, stage.bob_device, stage.id]
    carol = next(entry for entry in chain.real if entry["user"] == stage.user("carol"))
    if how == "returns":
        stage.go()
        change = lambda entries, _: in_order([*entries, {**carol, "participant": 55}])
    else:
        change = lambda entries, _: [{**entry, "participant": 55} if entry["user"] == stage.user("carol") else entry for entry in entries]
    stage.proxy.lists.lie_to(stage.bob.user, change)
    stage.silent_under(stage.bob, stage.come(1))
    return [stage.bob]


def without_refresh(body, _):
    for entry in body.get("deliver", []):
        entry.pop("refresh", None)
    return body


def refreshed(stage, tab):
    """A tab has published a new join key."""
    stage.proxy.sees("request", f"calls/{stage.id}/keys/confirm", 20, tab.user, lambda body: "joinKey" in body)


@row(25)
def an_older_join_key_to_a_leader_that_knows_better(stage):
    stage.call(("carol", "dave"))
    refreshed(stage, stage.bob)
    stage.come()
    stage.go()
    stage.come(1)
    stage.lie("event", "keys.rotate", without_refresh, to=stage.alice.user)
    before = stage.newest
    stage.others[1].go(stage.id)
    handed = stage.proxy.sees("request", f"calls/{stage.id}/keys", user=stage.alice.user, where=lambda body: body["epoch"] > before)
    assert stage.bob.user not in {envelope["to"]["user"] for envelope in handed["envelopes"]}
    return [stage.alice]


@row(26)
def a_refresh_that_is_withheld(stage):
    stage.call()
    refreshed(stage, stage.bob)
    stage.come()
    stage.lie("event", "keys.rotate", without_refresh, to=stage.alice.user)
    stage.lie(
        "event", "keys.request", lambda body, _: {**body, "to": {name: body["to"][name] for name in body["to"] if name != "refresh"}}, to=stage.alice.user
    )
    stage.silent_under(stage.bob, stage.go(), 4)
    return [stage.bob]

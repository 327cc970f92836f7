"""Lies about who lets whom in: words that are withheld, or signed by the wrong person. Every function returns the tabs that must warn."""

import base64
import os

from conftest import wait_for
from lies_about_keys import tell_of_ghost
from lies_about_lists import with_ghost
from lying_stage import row
from told_lists import b64, layouts

NOBODY = "nobody let this person in"
BY_THE_SERVICE = "the app’s service lets people in"


def is_shown_as_uninvited(stage, tab, user):
    """The tile and the list of people show it, and after a while nothing is sent."""
    tile = f".tile[data-user='{user}']"
    wait_for(lambda: NOBODY in tab.text(f"{tile} .tile-state"), 10, f"{tab.user} sees that nobody let {user} in")
    wait_for(lambda: not stage.audit.is_sending(tab.user), 20, f"{tab.user} stops sending")
    tab.sees("#call-notice[data-cause=uninvited]")
    tab.press("Add people")
    tab.sees("#people-dialog")
    rows = lambda: tab.text("#member-list").replace("\n", " ")
    wait_for(lambda: NOBODY in rows() and "let in by" in rows(), 5, lambda: f"the list of people says who let whom in: {rows()}")
    tab.click("#people-dialog button", "Close")


def ghost_in_the_call(stage, words=()):
    """A device of zed is on everybody's list and reported to be in the call, with these words and their signers."""
    ghost, change = with_ghost(stage, "zed", 77)
    admissions = [word for word, _ in words]
    signers = [signer.device_facts() for _, signer in words]
    told = lambda body, _: {**body, "admissions": body.get("admissions", []) + admissions, "signers": body.get("signers", []) + signers}
    for tab in (stage.alice, stage.bob):
        stage.proxy.lists.lie_to(tab.user, change)
        tell_of_ghost(stage, tab, ghost)
        if words:
            stage.lie("event", "keys.rotate", told, to=tab.user)
    return ghost


def word(stage, by, user, call=None):
    """A word of `by`, a device whose keys the test has."""
    data = layouts.admission_bytes(call or stage.id, by.fingerprint, user)
    return {"user": user, "fingerprint": b64(by.fingerprint), "sigAlg": "ES256", "signature": b64(by.sign.sign(data))}


@row(400)
def a_ghost_without_a_word(stage):
    stage.call()
    ghost = ghost_in_the_call(stage)
    stage.come()
    for tab in (stage.alice, stage.bob):
        is_shown_as_uninvited(stage, tab, "zed")
    assert not ghost.secrets, "somebody whom nobody let in gets the key"
    return [stage.alice, stage.bob]


@row(401, "another call", "another user", "a bit")
def a_word_that_is_not_for_the_ghost(stage, how):
    stage.call()
    carol = stage.others[0].ghost
    one = {"another call": lambda: word(stage, carol, "zed", call="11111111-2222-4333-8444-555555555555"), "another user": lambda: {**word(stage, carol, "zoe"), "user": "zed"}}
    flipped = lambda: {**word(stage, carol, "zed"), "signature": b64(os.urandom(64))}
    ghost = ghost_in_the_call(stage, [(one.get(how, flipped)(), carol)])
    stage.come()
    is_shown_as_uninvited(stage, stage.alice, "zed")
    assert not ghost.secrets
    return [stage.alice]


@row(402)
def the_words_of_an_honest_member_are_withheld(stage):
    stage.call()
    without = lambda body, _: {name: value for name, value in body.items() if name != "admissions"}
    stage.lie("event", "keys.rotate", without, to=stage.bob.user)
    stage.lie("reply", "calls/*/keys/list", without, to=stage.bob.user).told = 1
    stage.come()
    carol = stage.user("carol")
    is_shown_as_uninvited(stage, stage.bob, carol)
    stage.hearers.add(stage.bob.user)
    stage.goes_on(stage.alice)
    stage.bob.press("Send anyway")
    stage.goes_on(stage.bob)
    return [stage.bob]


@row(403)
def an_accomplice_signs(stage):
    stage.call(("carol", "mallory"))
    accomplice = stage.proxy.lists.ghost("eve")
    ghost = ghost_in_the_call(stage, [(word(stage, accomplice, "zed"), accomplice), (word(stage, accomplice, "eve"), accomplice)])
    stage.come()
    is_shown_as_uninvited(stage, stage.alice, "zed")
    assert not ghost.secrets
    return [stage.alice]


def without_words_for(user):
    return lambda body, _: {**body, "admissions": [word for word in body.get("admissions", []) if word.get("user") != user]}


@row(408)
def a_ring_without_a_word(stage):
    stage.people()
    lie = stage.lie("event", "call.ring", without_words_for(stage.bob.user), to=stage.bob.user)
    for kind, of in (("event", "keys.rotate"), ("reply", "calls/*/keys/list")):
        stage.lie(kind, of, without_words_for(stage.bob.user), to=stage.bob.user).told = 1
    stage.ring()
    stage.answer()
    stage.proxy.sees("event", "keys.switch", user=stage.bob.user, where=lambda body: body["epoch"] >= 2)
    wait_for(lambda: 2 in stage.audit.epochs(stage.bob.user), 10, "Bob sends under epoch 2")
    assert lie.told and 1 not in stage.audit.epochs(stage.bob.user), "the envelope of the ring is used"
    wait_for(lambda: any(BY_THE_SERVICE in text for text in stage.told(stage.bob)), 15, "Bob is told that no member signed his invitation")
    return [stage.bob]


@row(409)
def ones_own_word_is_withheld(stage):
    stage.people()
    for kind, of in (("event", "call.ring"), ("event", "keys.rotate"), ("reply", "calls/*/keys/list")):
        stage.lie(kind, of, without_words_for(stage.bob.user), to=stage.bob.user).told = 1
    stage.call()
    ghost = ghost_in_the_call(stage)
    stage.hearers.add(stage.bob.user)
    stage.come()
    wait_for(lambda: any(BY_THE_SERVICE in text for text in stage.told(stage.bob)), 15, "Bob is told that no member signed his invitation")
    assert NOBODY not in stage.bob.text(f".tile[data-user='{ghost.user}'] .tile-state")
    is_shown_as_uninvited(stage, stage.alice, "zed")
    return [stage.bob]


@row(412)
def a_guest_without_a_link(stage):
    stage.call()
    ghost, change = with_ghost(stage, "guest~zed", 77)
    for tab in (stage.alice, stage.bob):
        stage.proxy.lists.lie_to(tab.user, change)
        tell_of_ghost(stage, tab, ghost, user="guest~zed")
    stage.come()
    for tab in (stage.alice, stage.bob):
        is_shown_as_uninvited(stage, tab, "guest~zed")
    assert not ghost.secrets, "a guest without a link gets the key"
    return [stage.alice, stage.bob]


@row(417)
def ten_thousand_words(stage):
    stage.call()
    noise = [{"user": f"u{number}", "fingerprint": b64(os.urandom(32)), "sigAlg": "ES256", "signature": b64(os.urandom(64))} for number in range(10_000)]
    odd = [None, 5, "word", [], {}, {"user": 5}, {"user": "x", "fingerprint": 7}, {"link": base64.b64encode(b"x").decode()}]
    stage.lie("event", "keys.rotate", lambda body, _: {**body, "admissions": [*odd, *body.get("admissions", []), *noise], "signers": odd}, to=stage.bob.user)
    epoch = stage.come()
    wait_for(lambda: epoch in stage.audit.epochs(stage.bob.user), 10, "Bob sends under the epoch that came with them")
    stage.goes_on(stage.alice, stage.bob)
    assert stage.told(stage.bob) == []
    return []

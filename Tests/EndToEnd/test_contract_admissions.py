"""Protocol section 5.13, who let whom in, tested by a client that knows only the text. The words are signed with real keys."""

import os

import pytest

import words
from device import NO_CALL, b64, join, starting
from test_contract_guests import Guest

# The server may report either of two bad words.
BAD_SIGNATURES = {("request.invalid", f"admissions.{place}.signature") for place in (0, 1)}


def said(body):
    """(subject, fingerprint) of each word."""
    return {(word.get("user", "a link"), word["fingerprint"]) for word in body.get("admissions", [])}


def by(device, *users):
    return {(user, b64(device.fingerprint)) for user in users}


def start_of(device, *users):
    """The body of a `start`, with its words."""
    body = {"callees": list(users), "media": "audio", **starting()}
    return words.with_words("/app/calls/start", body, device.user, device.sign_key, device.fingerprint)


def refusal(device, destination, body):
    code = device.fails(destination, body)
    return code, device.error_body.get("field")


@pytest.mark.parametrize(("alg", "options"), [("ES256", {}), ("EdDSA", {}), ("PS256", {"bits": 2048})])
def test_a_word_is_good_under_each_algorithm_and_bad_with_a_bit_flipped(on, names, alg, options):
    alice, bob = on(names[0]), on(names[1])
    alice.make_keys(alg, **options)
    alice.register()
    body = start_of(alice, bob.user)
    place = next(place for place, word in enumerate(body["admissions"]) if word["user"] == bob.user)
    good = body["admissions"][place]["signature"]
    body["admissions"][place]["signature"] = ("A" if good[0] != "A" else "B") + good[1:]
    assert refusal(alice, "/app/calls/start", body) == ("request.invalid", f"admissions.{place}.signature")
    assert "call.ring" not in bob.names()
    body["admissions"][place]["signature"] = good
    assert alice.request("/app/calls/start", body)["results"] == {bob.user: "ringing"}


def test_a_short_rsa_key_verifies_nothing(on, names):
    alice, bob = on(names[0]), on(names[1])
    alice.make_keys("PS256", bits=1024)
    alice.register()
    assert refusal(alice, "/app/calls/start", start_of(alice, bob.user)) in BAD_SIGNATURES


def test_a_request_without_its_words_is_refused(on, names):
    alice, bob, carol = (on(name) for name in names[:3])
    body = start_of(alice, bob.user)
    assert refusal(alice, "/app/calls/start", {**body, "admissions": []}) == ("request.invalid", "admissions")
    others = [*body["admissions"], words.admission(alice.sign_key, alice.fingerprint, body["id"], carol.user)]
    assert refusal(alice, "/app/calls/start", {**body, "admissions": others}) == ("request.invalid", "admissions")
    elsewhere = words.admissions(alice.sign_key, alice.fingerprint, NO_CALL, [bob.user, alice.user])
    assert refusal(alice, "/app/calls/start", {**body, "admissions": elsewhere}) in BAD_SIGNATURES
    call = alice.request("/app/calls/start", body)["call"]["id"]
    path = f"/app/calls/{call}"
    assert refusal(alice, path + "/invite", {"callees": [carol.user], "admissions": []}) == ("request.invalid", "admissions")
    foreign = words.admissions(bob.sign_key, bob.fingerprint, call, [carol.user])
    assert refusal(alice, path + "/invite", {"callees": [carol.user], "admissions": foreign}) == ("request.invalid", "admissions.0.fingerprint")
    assert refusal(alice, path + "/link", {"admission": None}) == ("request.invalid", "admission")
    assert "call.ring" not in carol.names()


def test_rings_and_lists_bring_the_words_up_to_the_root(on, names):
    alice, bob, carol = (on(name) for name in names[:3])
    call, _ = alice.start(bob.user)
    ring = bob.event("call.ring")
    assert said(ring) == by(alice, alice.user, bob.user)
    assert [(s["user"], s["device"], s["fingerprint"]) for s in ring["signers"]] == [(alice.user, "phone", b64(alice.fingerprint))]
    assert {key["use"]: key["publicKey"] for key in ring["signers"][0]["keys"]} == {"wrap": b64(alice.wrap), "sign": b64(alice.sign)}
    bob.enter(call)
    assert said(alice.event("keys.rotate")) == by(alice, bob.user), "what alice had before is not repeated"
    whole = bob.event("keys.rotate")
    assert said(whole) == by(alice, alice.user, bob.user) and "signers" not in whole
    bob.call(call, "invite", {"callees": [carol.user]})
    alice.call(call, "leave")
    carol.event("call.ring")
    carol.enter(call)
    listed = carol.event("keys.rotate", where=lambda body: len(body.get("list", [])) == 2)
    assert said(listed) == by(alice, alice.user, bob.user) | by(bob, carol.user)
    assert [signer["user"] for signer in listed["signers"]] == [alice.user], "she is not on the list"
    assert said(carol.call(call, "keys/list")) == said(listed)


def test_a_guest_comes_by_the_secret_of_a_link(on, names, server):
    alice = on(names[0])
    call, _ = alice.start()
    link = alice.call(call, "link")["link"]
    ana = Guest(server, call, link)
    path, secret = f"/app/calls/{call}/join", words.SECRETS[link]
    good = words.join_word(ana.fingerprint, call, secret, ana.user)
    for word, refused in [
        (None, ("request.invalid", "admission")),
        ({**good, "user": alice.user}, ("request.invalid", "admission.user")),
        ({**good, "fingerprint": b64(alice.fingerprint)}, ("request.invalid", "admission.fingerprint")),
        (words.join_word(ana.fingerprint, call, os.urandom(16), ana.user), ("call.link-invalid", "admission")),
        (words.join_word(ana.fingerprint, NO_CALL, secret, ana.user), ("call.link-invalid", "admission")),
    ]:
        assert refusal(ana, path, {**join(), "link": link, "admission": word}) == refused
    ana.enter(call, "join", {**join(), "link": link, "admission": good})
    told = alice.event("keys.rotate")["admissions"]
    assert [word.get("user") for word in told] == [None, ana.user] and told[1] == good
    alice.call(call, "link", {"revoke": True})
    fresh = alice.call(call, "link")["link"]
    eve = Guest(server, call, fresh)
    old = words.join_word(eve.fingerprint, call, secret, eve.user)
    assert refusal(eve, path, {**join(), "link": fresh, "admission": old}) == ("call.link-invalid", "admission")
    for device in (ana, eve):
        device.close()


def test_another_device_of_a_member_lets_nobody_in(on, names):
    alice, laptop, bob = on(names[0]), on(names[0], "laptop"), on(names[1])
    call, _ = alice.start()
    assert laptop.fails(f"/app/calls/{call}/invite", {"callees": [bob.user]}) == "call.answered-elsewhere"
    assert laptop.fails(f"/app/calls/{call}/link") == "call.answered-elsewhere"
    laptop.call(call, "link", {"revoke": True})

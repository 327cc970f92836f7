"""Attacks by a member with another client, by a user, and by a server and a member together. Every function returns the tabs that must warn."""

import time

from conftest import wait_for
from device import starting
from lying_proxy import Failure
from lying_stage import row

# A leader's client that gives one user something else. `asked` is the entry, `values` has the user's id and more.
HAND_OUT = """
    const { envelope, lend } = exports.Epoch.prototype;
    exports.Epoch.prototype.envelope = async function (asked, seen) {
      if (asked.user !== values[0]) return envelope.call(this, asked, seen);
      window.conclaveHasLied = true;
      %s
      const made = await envelope.call(this, asked, seen);
      delete this.lend;
      delete this.listed;
      return made;
    };
"""
# Before it posts the envelope, the client checks that the secret is still the epoch's, so the lent copy differs only until it is sealed.
OTHER_SECRET = """
      this.lend = (work) => lend.call(this, (copy) => {
        const right = copy.slice();
        crypto.getRandomValues(copy);
        const { sign } = SubtleCrypto.prototype;
        SubtleCrypto.prototype.sign = function (algorithm, ...rest) {
          if ((algorithm.name ?? algorithm) !== 'HMAC') {
            copy.set(right);
            SubtleCrypto.prototype.sign = sign;
          }
          return sign.call(this, algorithm, ...rest);
        };
        return work(copy);
      });
"""
LONG_LIVED_KEY = """
      const entry = this.listed(asked);
      const { alg, publicKey } = this.keysOf(entry).find(({ use }) => use === 'wrap');
      this.listed = () => ({ ...entry, joinKey: { alg, publicKey } });
      asked = { ...asked, refresh: undefined };
      seen = { accepts: () => true };
"""


def leads_otherwise(stage, how):
    """A member leaves, and Alice, who leads, gives Bob something else."""
    stage.in_page(stage.alice, "epoch.js", HAND_OUT % how, stage.bob.user)
    epoch = stage.go()
    wait_for(lambda: stage.alice.driver.execute_script("return window.conclaveHasLied"), 5, "Alice's client lies")
    return epoch


@row(30)
def a_leader_hands_out_two_secrets(stage):
    stage.call()
    stage.come()
    epoch = leads_otherwise(stage, OTHER_SECRET)
    wait_for(lambda: epoch in stage.audit.epochs(stage.bob.user), 10, "Bob uses the secret that only he was given")
    named = lambda: [text for text in stage.told(stage.bob) if stage.alice.name in text and "is not secured together" in text]
    wait_for(named, 20, "Bob is told that Alice has another key")
    sealed = {frame.key for frame in stage.audit.frames() if frame.kid & 255 == epoch}
    assert len(sealed) == 2 and not sealed & {frame.key for frame in stage.audit.opened}, "one opens the other's frames with another secret"
    return [stage.bob]


@row(31, "of the ring", "of the leader")
def an_envelope_to_the_long_lived_key(stage, whose):
    stage.call()
    stage.come()
    if whose == "of the leader":
        epoch = leads_otherwise(stage, LONG_LIVED_KEY)
        handed = stage.proxy.sees("event", "keys.envelope", user=stage.bob.user, where=lambda body: body["epoch"] == epoch)
        ring = stage.proxy.sees("event", "call.ring", user=stage.bob.user)["envelope"]
        assert handed["key"] == ring["key"], "the envelope is not sealed to the key that rings are sealed to"
    else:
        ring = stage.proxy.sees("event", "call.ring", user=stage.bob.user)["envelope"]
        stage.lie("event", "keys.envelope", lambda body, _: {**body, **ring, "epoch": body["epoch"]}, to=stage.bob.user)
        epoch = stage.go()
    stage.silent_under(stage.bob, epoch, 4)
    return [stage.bob]


@row(35)
def the_epoch_never_changes(stage):
    stage.call()
    for tab in (stage.alice, stage.bob):
        stage.lie("event", "keys.rotate", lambda body, _: None, to=tab.user)
        stage.lie("event", "keys.switch", lambda body, _: None, to=tab.user).told = 1
        stage.lie("reply", "calls/*/keys/list", lambda body, _: Failure("internal"), to=tab.user).told = 1
    before = stage.newest
    stage.others[0].come(stage.id)
    stage.proxy.sees("event", "keys.rotate", user=stage.bob.user, where=lambda body: body["epoch"] > before)
    # The time for the rules of protocol section 5.12: twice the 10 minutes of `rotateMinutes`.
    minutes_pass = """
        const { update, tick } = exports.RosterWatch.prototype;
        const ahead = values[0] * 60_000;
        exports.RosterWatch.prototype.update = function (now, facts) { return update.call(this, now + ahead, facts); };
        exports.RosterWatch.prototype.tick = function (now) { return tick.call(this, now + ahead); };
    """
    stage.in_page(stage.bob, "roster-watch.js", minutes_pass, 19)
    time.sleep(1.5)  # a fixed wait for the absence of a warning: the page checks once a second whether to warn
    old = lambda: [text for text in stage.told(stage.bob) if "should have been renewed long ago" in text]
    assert not old(), "a key of 19 minutes is not old"
    stage.in_page(stage.bob, "roster-watch.js", minutes_pass, 1.5)
    wait_for(old, 5, "Bob is told that the key is old")
    assert stage.audit.epochs(stage.bob.user) <= {1, 2}
    return [stage.bob]


@row(47)
def a_call_is_started_under_the_id_of_another(stage):
    alice, bob = stage.tab("Alice"), stage.tab("Bob")
    carol, mallory = stage.member("carol"), stage.member("mallory")
    alice.fill("People", carol.user)
    alice.press("Audio call")
    alice.sees("#call")
    known = stage.proxy.seen("request", "calls/start", alice.user)[-1][3]["id"]
    start = lambda call: {"callees": [bob.user], "media": "audio", **starting(), "id": call, **mallory.join_body(call)}
    carol.come(known)
    assert mallory.fails("/app/calls/start", start(known)) == "call.exists"
    rung = lambda: [body["call"] for _, _, _, body in stage.proxy.seen("event", "call.ring", bob.user)]
    # The next event shows that Bob would have been rung by now.
    own = starting()["id"]
    mallory.request("/app/calls/start", start(own))
    bob.sees("#ring")
    assert rung() == [own]
    assert mallory.fails(f"/app/calls/{known}/state") in ("call.not-found", "auth.forbidden"), "somebody who knows a call's id is in it"
    assert alice.shown("#call"), "Alice's call is over"
    return []

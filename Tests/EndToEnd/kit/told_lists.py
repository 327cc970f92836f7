"""A lying server's version of a call's key lists: each device's chain of lists, made consistent again after a lie."""

import base64
import copy
import hashlib
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "docs/example"))
import layouts  # noqa: E402
from layouts import b64  # noqa: E402


def name_of(entry):
    return entry["user"], entry["device"]


def in_order(entries):
    return sorted(entries, key=lambda entry: (entry["user"].encode(), entry["device"].encode()))


def wrapped(entry):
    """Uses the number that a careless client would hash: any value, modulo 2^32."""
    return {**entry, "participant": int(float(entry["participant"])) % (1 << 32)}


def new_key():
    return layouts.Key(scalar=int.from_bytes(os.urandom(31), "big") + 1)


class Ghost:
    """A device that the server has made up, with known keys, so that it can open what it is sent."""

    def __init__(self, user, device="ghost"):
        self.user, self.device = user, device
        self.wrap, self.sign = new_key(), new_key()
        self.begin_stay()
        self.fingerprint = hashlib.sha256(layouts.fingerprint_bytes(user, device, layouts.HPKE, self.wrap.spki, "ES256", self.sign.spki)).digest()
        self.secrets = {}

    def begin_stay(self):
        self.join, self.join_id = new_key(), os.urandom(16)

    @property
    def keys(self):
        return [
            {"use": "wrap", "alg": layouts.HPKE, "publicKey": b64(self.wrap.spki)},
            {"use": "sign", "alg": "ES256", "publicKey": b64(self.sign.spki)},
        ]

    def device_facts(self):
        """As `devices/list` has it."""
        fingerprint = b64(self.fingerprint)
        return {
            "user": self.user,
            "device": self.device,
            "name": "New",
            "keys": self.keys,
            "fingerprint": fingerprint,
            "registeredAt": 1790000000000,
            "vouches": [],
        }

    def entry(self, call, participant):
        at = 1790000000000
        data = layouts.join_bytes(call, self.fingerprint, self.join_id, 0, at, layouts.HPKE, self.join.spki)
        key = {"v": 2, "alg": layouts.HPKE, "publicKey": b64(self.join.spki), "generation": 0, "at": at, "signature": b64(self.sign.sign(data))}
        joined = {"joinId": b64(self.join_id), "joinKey": key}
        return {"user": self.user, "device": self.device, "participant": participant, "fingerprint": b64(self.fingerprint), **joined}

    def open(self, call, envelope):
        key = {hashlib.sha256(pair.spki).digest(): pair for pair in (self.wrap, self.join)}[base64.b64decode(envelope["key"])]
        secret = layouts.hpke_open(key, b"conclave-envelope-v2", b"", base64.b64decode(envelope["ciphertext"]))
        self.secrets[call, envelope["epoch"]] = secret


class Chain:
    """One device's lists of one call: those that the server has announced, and those that the device was told."""

    def __init__(self, call):
        self.call = call
        self.real, self.epochs = [], {}
        # Until a lie is told, the server's own hashes are forwarded.
        self.has_lied = False

    def take_as_it_is(self, body):
        previous, value = (base64.b64decode(body[name]) for name in ("previous", "listHash"))
        roster = hashlib.sha256(layouts.roster_bytes(self.real)).digest()
        self.epochs[body["epoch"]] = {"list": self.real, "previous": previous, "roster": roster, "hash": value}
        return self.epochs[body["epoch"]]

    def take(self, epoch, entries, previous=None):
        """The told list of an epoch."""
        previous = previous or self.epochs.get(epoch - 1, {"hash": bytes(32)})["hash"]
        roster = hashlib.sha256(layouts.roster_bytes([wrapped(entry) for entry in entries])).digest()
        list_hash = hashlib.sha256(layouts.list_bytes(self.call, epoch, previous, roster)).digest()
        self.epochs[epoch] = {"list": entries, "previous": previous, "roster": roster, "hash": list_hash}
        return self.epochs[epoch]


class ToldLists:
    """`lie_to(user, change)`: from the next announcement on, that user is told `change(entries, epoch)`, with matching hashes."""

    def __init__(self, proxy):
        self.proxy = proxy
        self.chains, self.fingerprints, self.all = {}, {}, []
        self.forget()

    def forget(self):
        self.changes, self.ghosts = {}, []
        # The number of lists told that differ from the server's.
        self.lies = 0

    def lie_to(self, user, change):
        self.changes[user] = change

    def ghost(self, user, device="ghost"):
        self.ghosts.append(Ghost(user, device))
        return self.ghosts[-1]

    def chain(self, link, call):
        return self.chains.setdefault((link.user, link.device, call), Chain(call))

    # Requests of a client

    def asked(self, link, path, body):
        if path == "devices/register":
            keys = {key["use"]: key for key in body["keys"]}
            parts = (part for use in ("wrap", "sign") for part in (keys[use]["alg"], base64.b64decode(keys[use]["publicKey"])))
            self.fingerprints[link.user, link.device] = hashlib.sha256(layouts.fingerprint_bytes(link.user, link.device, *parts)).digest()
        if path == "calls/start" and "joinKey" in body:
            self._started(link, body)
        if path.endswith("/keys"):
            return self._handed_out(path.split("/")[1], body)
        return body

    def _started(self, link, body):
        """The initiator makes epoch 1 and its list; no event announces it."""
        own = {name: body[name] for name in ("joinId", "joinKey")}
        fingerprint = lambda *device: b64(self.fingerprints[device])
        rung = {name_of(envelope["to"]) for envelope in body.get("envelopes", [])} & set(self.fingerprints)
        entries = [{"user": user, "device": device, "participant": 0, "fingerprint": fingerprint(user, device)} for user, device in rung]
        entries.append({"user": link.user, "device": link.device, "participant": 1, "fingerprint": fingerprint(link.user, link.device), **own})
        chain = self.chain(link, body["id"])
        chain.real = in_order(entries)
        chain.take(1, chain.real)

    def _handed_out(self, call, body):
        """The ghosts take the envelopes that are for them, since the server does not know these devices."""
        ghosts = {(ghost.user, ghost.device): ghost for ghost in self.ghosts}
        for envelope in body["envelopes"]:
            if ghost := ghosts.get(name_of(envelope["to"])):
                ghost.open(call, envelope)
        return {**body, "envelopes": [envelope for envelope in body["envelopes"] if name_of(envelope["to"]) not in ghosts]}

    # Events and replies of the server

    def announced(self, link, name, body):
        chain = self.chain(link, body["call"])
        if name == "call.ring":
            if "list" in body:
                chain.real = body["list"]
                chain.take(1, chain.real)
            return body
        return self._rotate(link, chain, body)

    def replied(self, link, path, asked, body):
        if path == "devices/list" and self.ghosts:
            extra = [ghost.device_facts() for ghost in self.ghosts if ghost.user in asked.get("users", [])]
            return {**body, "devices": body["devices"] + extra}
        if path.endswith("/keys/list") and "list" in body:
            return self._listed(link, self.chain(link, path.split("/")[1]), asked, body)
        return body

    def _told(self, link, chain, epoch):
        change = self.changes.get(link.user)
        entries = copy.deepcopy(chain.real)
        told = change(entries, epoch) if change else entries
        self.lies += told != chain.real
        return told

    def _rotate(self, link, chain, body):
        if "list" in body:
            chain.real = body["list"]
        else:
            gone = set(body["removed"]) | {0}
            chain.real = in_order([entry for entry in chain.real if entry["participant"] not in gone] + body["added"])
        epoch = body["epoch"]
        chain.has_lied |= link.user in self.changes
        if not chain.has_lied:
            self.all.append((chain.call, link.user, epoch, chain.take_as_it_is(body)))
            return body
        before = chain.epochs.get(epoch - 1)
        told = self._told(link, chain, epoch)
        facts = chain.take(epoch, told, None if before else base64.b64decode(body["previous"]))
        self.all.append((chain.call, link.user, epoch, facts))
        if b64(facts["hash"]) == body["listHash"]:
            return body
        body = {**body, "previous": b64(facts["previous"]), "listHash": b64(facts["hash"])}
        if "list" in body:
            body["list"] = told
        else:
            old, new = ({entry["participant"]: entry for entry in entries} for entries in (before["list"] if before else [], told))
            body["added"] = [entry for entry in told if old.get(entry["participant"]) != entry]
            body["removed"] = [number for number, entry in old.items() if number and new.get(number) != entry]
        if "deliver" in body:
            fresh = {name_of(entry) for entry in (told if body["mode"] == "fresh" else body.get("added", told))}
            ghosts = {(ghost.user, ghost.device): ghost for ghost in self.ghosts}
            body["deliver"] = body["deliver"] + [
                {**entry, "keys": ghosts[name_of(entry)].keys} for entry in told if name_of(entry) in ghosts and name_of(entry) in fresh
            ]
        return body

    def _listed(self, link, chain, asked, body):
        epoch = body["epoch"]
        if epoch not in chain.epochs:
            chain.real = body["list"]
            chain.has_lied |= link.user in self.changes
            if not chain.has_lied:
                chain.take_as_it_is(body)
                return body
            for item in body["links"]:
                if item["epoch"] not in chain.epochs and item["epoch"] < epoch and item["epoch"] - 1 in chain.epochs:
                    previous, roster = chain.epochs[item["epoch"] - 1]["hash"], base64.b64decode(item["roster"])
                    value = hashlib.sha256(layouts.list_bytes(chain.call, item["epoch"], previous, roster)).digest()
                    chain.epochs[item["epoch"]] = {"list": [], "previous": previous, "roster": roster, "hash": value}
            known = epoch - 1 in chain.epochs
            chain.take(epoch, self._told(link, chain, epoch), None if known else base64.b64decode(body["previous"]))
        facts = chain.epochs[epoch]
        if b64(facts["hash"]) == body["listHash"]:
            return body
        links = [{**item, "roster": b64(chain.epochs[item["epoch"]]["roster"])} if item["epoch"] in chain.epochs else item for item in body["links"]]
        told = {"previous": b64(facts["previous"]), "listHash": b64(facts["hash"]), "list": facts["list"], "links": links}
        return {**body, **told}


def known_keys(ghosts, told, tracks=4):
    """The SFrame keys, as SHA-256 in hex, that can be derived from the ghosts' secrets and every list that the server told anybody: {key: (call, epoch)}.
    `told` is `ToldLists.all`."""
    lists = {}
    for call, _, epoch, facts in told:
        lists.setdefault((call, epoch), {})[facts["hash"]] = facts["list"]
    secrets = {(call, epoch, secret) for ghost in ghosts for (call, epoch), secret in ghost.secrets.items()}
    frontier = list(secrets)
    while frontier:
        call, epoch, secret = frontier.pop()
        for list_hash in lists.get((call, epoch + 1), ()):
            made = (call, epoch + 1, layouts.hkdf512(secret, call, layouts.ratchet_info(epoch + 1, list_hash), 32))
            if made not in secrets:
                secrets.add(made)
                frontier.append(made)
    keys = {}
    for call, epoch, secret in secrets:
        for list_hash, entries in lists.get((call, epoch), {}).items():
            for entry in entries:
                if not entry.get("joinId"):
                    continue
                facts = base64.b64decode(entry["fingerprint"]), base64.b64decode(entry["joinId"])
                info = layouts.sender_info(epoch, list_hash, entry["participant"], *facts)
                base_key = layouts.hkdf512(secret, call, info, 64)
                for n in range(tracks + 1):
                    kid = layouts.kid_of(entry["participant"], n, epoch)
                    keys[hashlib.sha256(layouts.sframe_key(base_key, kid)).hexdigest()] = (call, epoch)
    return keys

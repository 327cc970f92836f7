#!/usr/bin/env python3
"""The key agreement's vectors for both clients, made by the implementation in docs/example/layouts.py, which shares no code with either.

`keys.py` writes keys.json, `keys.py --check` checks that keys.json is this file's output. All private keys are SHA-256 of an ASCII string, so the output never
changes. ES256 signatures are verified instead of compared, since any valid signature is right.
"""

import base64
import json
import pathlib
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "docs/example"))
from layouts import *  # noqa: E402,F403

HERE = pathlib.Path(__file__).parent
FILE = HERE / "keys.json"
CALL = "7d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d5"
TIME = 1_800_000_000_000


class Device:
    """A device in this file's only call: its long-lived keys, its stay and its join keys."""

    def __init__(self, user, device, participant):
        self.user, self.device, self.participant = user, device, participant
        name = f"{user} {device}"
        self.wrap, self.sign = Key(f"{name} wrap"), Key(f"{name} sign")
        self.fingerprint_bytes = fingerprint_bytes(user, device, HPKE, self.wrap.spki, "ES256", self.sign.spki)
        self.fingerprint = sha256(self.fingerprint_bytes)
        self.rejoin("")

    def rejoin(self, stay, participant=None):
        self.participant = participant or self.participant
        name = f"{self.user} {self.device} stay {stay}"
        self.join_id = fixed(f"{name} joinId", 16)
        self.keys = [Key(f"{name} join {generation}") for generation in range(2)]
        return self

    def join_bytes(self, generation=0):
        return join_bytes(CALL, self.fingerprint, self.join_id, generation, TIME + generation, HPKE, self.keys[generation].spki)

    def join_key(self, generation=0):
        return {
            "v": 2,
            "alg": HPKE,
            "publicKey": b64(self.keys[generation].spki),
            "generation": generation,
            "at": TIME + generation,
            "signature": b64(self.sign.sign(self.join_bytes(generation))),
        }

    def entry(self, ring=False):
        entry = {"user": self.user, "device": self.device, "participant": 0 if ring else self.participant, "fingerprint": b64(self.fingerprint)}
        return entry if ring else entry | {"joinId": b64(self.join_id), "joinKey": self.join_key()}

    def json(self):
        return {"user": self.user, "device": self.device, "wrap": {"alg": HPKE} | self.wrap.json(), "sign": {"alg": "ES256"} | self.sign.json()}


# The file


def device_vectors(devices):
    vectors = []
    for device in devices:
        wrong = fingerprint_bytes(device.user, device.device, HPKE, flip(device.wrap.spki), "ES256", device.sign.spki)
        vectors.append(
            device.json()
            | {
                "bytes": b64(device.fingerprint_bytes),
                "fingerprint": b64(device.fingerprint),
                "flipped": {"wrapPublicKey": b64(flip(device.wrap.spki)), "fingerprint": b64(sha256(wrong))},
            }
        )
    return vectors


def join_vector(device, generation):
    signature = base64.b64decode(device.join_key(generation)["signature"])
    data = device.join_bytes(generation)
    other_call = join_bytes(flip(CALL.encode()), device.fingerprint, device.join_id, generation, TIME + generation, HPKE, device.keys[generation].spki)
    return {
        "call": CALL,
        "user": device.user,
        "device": device.device,
        "participant": device.participant,
        "fingerprint": b64(device.fingerprint),
        "joinId": b64(device.join_id),
        "generation": generation,
        "key": device.keys[generation].json(),
        "signKey": b64(device.sign.spki),
        "joinKey": device.join_key(generation),
        "bytes": b64(data),
        "keyHash": b64(sha256(device.keys[generation].spki)),
        "signature": b64(signature),
        "flipped": {
            "signature": b64(flip(signature)),
            "bytes": b64(flip(data)),
            "at": TIME + generation ^ 1,
            "joinId": b64(flip(device.join_id)),
            "call": flip(CALL.encode()).decode(),
            "bytesOfOtherCall": b64(other_call),
        },
    }


def roster_vector(entries):
    names = [(entry["user"].encode(), entry["device"].encode()) for entry in entries]
    assert names == sorted(set(names))
    data = roster_bytes(entries)
    wrong = [dict(entry) for entry in entries]
    wrong[0]["participant"] ^= 8
    return {
        "entries": entries,
        "entryBytes": [b64(entry_bytes(entry)) for entry in entries],
        "bytes": b64(data),
        "rosterHash": b64(sha256(data)),
        "flipped": {"what": "participant of the first entry", "entries": wrong, "rosterHash": b64(sha256(roster_bytes(wrong)))},
    }


def chain_of(rosters):
    """`rosters`: (mode, switched, entries) of epoch 1 onwards."""
    previous, chain = bytes(32), []
    for epoch, (mode, switched, entries) in enumerate(rosters, 1):
        roster = sha256(roster_bytes(entries))
        data = list_bytes(CALL, epoch, previous, roster)
        chain.append(
            {
                "epoch": epoch,
                "mode": mode,
                "switched": switched,
                "list": entries,
                "previous": b64(previous),
                "rosterHash": b64(roster),
                "bytes": b64(data),
                "listHash": b64(sha256(data)),
            }
        )
        previous = sha256(data)
    return chain


def chain_vector(chain):
    links = [{"epoch": link["epoch"], "roster": link["rosterHash"]} for link in chain[1:]]
    raw = [base64.b64decode(link["rosterHash"]) for link in chain]
    start = base64.b64decode(chain[0]["listHash"])

    def end(rosters):
        value = start
        for epoch, roster in enumerate(rosters, 2):
            value = sha256(list_bytes(CALL, epoch, value, roster))
        return b64(value)

    assert end(raw[1:]) == chain[-1]["listHash"]
    wrong = [dict(link) for link in links]
    wrong[0]["roster"] = b64(flip(raw[1]))
    skipped = list_bytes(CALL, 4, base64.b64decode(chain[1]["listHash"]), raw[3])
    return {
        "call": CALL,
        "epochs": chain,
        "givenUp": [3],
        "since": 1,
        "links": links,
        "listHash": chain[-1]["listHash"],
        "flipped": {"links": wrong, "listHash": end([flip(raw[1]), *raw[2:]])},
        "flippedSkipped": {
            "what": "epoch 4 over the hash of epoch 2, as if epoch 3 had not been announced",
            "previous": chain[1]["listHash"],
            "listHash": b64(sha256(skipped)),
        },
    }


def ratchet_vector(secret, epoch, list_hash):
    def made(list_hash):
        return hkdf512(secret, CALL, ratchet_info(epoch, list_hash), 32)

    return {
        "call": CALL,
        "epoch": epoch,
        "listHash": b64(list_hash),
        "secret": b64(secret),
        "info": b64(ratchet_info(epoch, list_hash)),
        "next": b64(made(list_hash)),
        "flipped": {"listHash": b64(flip(list_hash)), "next": b64(made(flip(list_hash)))},
    }


def sender_vector(secret, epoch, list_hash, device):
    def made(participant):
        info = sender_info(epoch, list_hash, participant, device.fingerprint, device.join_id)
        return info, hkdf512(secret, CALL, info, 64)

    info, base_key = made(device.participant)
    kid = kid_of(device.participant, 1, epoch)
    text, metadata = b"an Opus frame", b""
    frame = sframe_seal(base_key, kid, 300, metadata, text)
    return {
        "call": CALL,
        "secret": b64(secret),
        "epoch": epoch,
        "listHash": b64(list_hash),
        "participant": device.participant,
        "fingerprint": b64(device.fingerprint),
        "joinId": b64(device.join_id),
        "info": b64(info),
        "baseKey": b64(base_key),
        "frame": {"n": 1, "kid": kid, "ctr": 300, "metadata": b64(metadata), "text": b64(text), "frame": b64(frame)},
        "flipped": {"participant": device.participant ^ 1, "baseKey": b64(made(device.participant ^ 1)[1]), "frame": b64(flip(frame))},
    }


def envelope_vector(secret, epoch, sender, to, key, use, list_hash, ephemeral):
    info = b"conclave-envelope-v2"
    ciphertext = hpke_seal(ephemeral, key.point, info, b"", secret)
    names = (sender.user, sender.device), (to.user, to.device)
    transcript = transcript_of(CALL, epoch, *names, HPKE, sha256(key.spki), ciphertext, list_hash)
    signature = sender.sign.sign(transcript)
    other = transcript_of(CALL, epoch, *names, HPKE, flip(sha256(key.spki)), ciphertext, list_hash)
    return {
        "call": CALL,
        "epoch": epoch,
        "secret": b64(secret),
        "listHash": b64(list_hash),
        "info": b64(info),
        "ephemeral": ephemeral.json(),
        "sealedTo": {"use": use} | key.json(),
        "signKey": b64(sender.sign.spki),
        "transcript": b64(transcript),
        "envelope": {
            "epoch": epoch,
            "to": dict(zip(("user", "device"), names[1])),
            "from": dict(zip(("user", "device"), names[0])),
            "alg": HPKE,
            "key": b64(sha256(key.spki)),
            "ciphertext": b64(ciphertext),
            "sigAlg": "ES256",
            "signature": b64(signature),
        },
        "flipped": {
            "ciphertext": b64(flip(ciphertext)),
            "signature": b64(flip(signature)),
            "key": b64(flip(sha256(key.spki))),
            "transcriptOfOtherKey": b64(other),
        },
    }


def confirmation_vector():
    devices = [Device(f"u{number:02}", "d", number + 1) for number in range(65)]
    entries = [device.entry() for device in devices]
    epoch, previous, secret = 9, fixed("list of epoch 8"), fixed("secret of epoch 9")
    roster = sha256(roster_bytes(entries))
    list_hash = sha256(list_bytes(CALL, epoch, previous, roster))
    key = hkdf512(secret, CALL, confirm_info(epoch, list_hash), 32)
    tags = {place: tag_of(key, device.participant, device.fingerprint, device.join_id) for place, device in enumerate(devices)}
    some = {place: tags[place] for place in (0, 5, 63, 64)}
    poisoned = tags | {7: flip(tags[7])}
    whole = [bucket_of(index, tags) for index in range(2)]
    return {
        "call": CALL,
        "epoch": epoch,
        "secret": b64(secret),
        "previous": b64(previous),
        "list": entries,
        "rosterHash": b64(roster),
        "listHash": b64(list_hash),
        "info": b64(confirm_info(epoch, list_hash)),
        "key": b64(key),
        "tags": [{"participant": devices[place].participant, "tag": b64(tag)} for place, tag in tags.items()],
        "buckets": whole,
        "some": {"participants": [devices[place].participant for place in some], "buckets": [bucket_of(index, some) for index in range(2)]},
        "poisoned": {
            "what": "participant 8 sent a tag of another secret",
            "participant": 8,
            "bucket": bucket_of(0, poisoned),
            "tags": [{"participant": devices[place].participant, "tag": b64(tag)} for place, tag in poisoned.items() if place < 64],
        },
        "flipped": {
            "buckets": [whole[0] | {"tag": b64(flip(base64.b64decode(whole[0]["tag"])))}, whole[1]],
            "beyondTheList": whole[1] | {"who": b64(u64(0b11 << 62))},
            "beyondTheBuckets": bucket_of(0, tags) | {"index": 2},
        },
    }


def code_vector(entries):
    roster = sha256(roster_bytes(entries))
    return {
        "call": CALL,
        "rosterHash": b64(roster),
        "bytes": b64(code_bytes(CALL, roster)),
        "hash": b64(sha256(code_bytes(CALL, roster))),
        "code": code_of(CALL, roster),
        "flipped": {"rosterHash": b64(flip(roster)), "code": code_of(CALL, flip(roster))},
    }


def message_vectors(secret, epoch, list_hash, sender, recipients):
    base_key = hkdf512(secret, CALL, sender_info(epoch, list_hash, sender.participant, sender.fingerprint, sender.join_id), 64)
    kid = kid_of(sender.participant, 0, epoch)
    text, content_key = b'{"text":"for two"}', fixed("message key")
    for_all = b'{"text":"for all"}'
    ct = AESGCM(content_key).encrypt(bytes(12), padded(text), None)
    participants = b"".join(u32(recipient.participant) for recipient in recipients)
    aad = sha256(participants) + sha256(ct)
    wraps, payload = [], u8(len(recipients))
    for recipient in recipients:
        info = message_info(CALL, list_hash, sender.participant, recipient.participant)
        ephemeral = Key(f"message ephemeral {recipient.participant}")
        wrap = hpke_seal(ephemeral, recipient.keys[0].point, info, aad, content_key, sender.keys[0])
        assert len(wrap) == 113
        payload += u32(recipient.participant) + wrap
        wraps.append(
            {
                "participant": recipient.participant,
                "key": recipient.keys[0].json(),
                "ephemeral": ephemeral.json(),
                "info": b64(info),
                "wrap": b64(wrap),
                "flipped": b64(flip(wrap)),
            }
        )
    payload += ct
    body = b"\1" + sframe_seal(base_key, kid, 17, b"private", payload)
    other_ct = AESGCM(content_key).encrypt(bytes(12), padded(flip(text)), None)
    to_all = b"\0" + sframe_seal(base_key, kid, 18, b"message", padded(for_all))
    mispadded = [
        {"what": what, "data": b64(data), "body": b64(b"\0" + sframe_seal(base_key, kid, 20 + index, b"message", data))}
        for index, (what, data) in enumerate(mispaddings(for_all))
    ]
    shared = {
        "call": CALL,
        "epoch": epoch,
        "secret": b64(secret),
        "listHash": b64(list_hash),
        "from": sender.participant,
        "fingerprint": b64(sender.fingerprint),
        "joinId": b64(sender.join_id),
        "baseKey": b64(base_key),
        "kid": kid,
    }
    return (
        shared
        | {
            "ctr": 18,
            "metadata": b64(b"message"),
            "text": b64(for_all),
            "padded": b64(padded(for_all)),
            "body": b64(to_all),
            "flipped": {"body": b64(flip(to_all)), "otherKind": b64(b"\1" + to_all[1:])},
            "mispadded": mispadded,
        },
        shared
        | {
            "ctr": 17,
            "metadata": b64(b"private"),
            "text": b64(text),
            "padded": b64(padded(text)),
            "senderKey": sender.keys[0].json(),
            "contentKey": b64(content_key),
            "ct": b64(ct),
            "aad": b64(aad),
            "to": [recipient.participant for recipient in recipients],
            "wraps": wraps,
            "payload": b64(payload),
            "body": b64(body),
            "flipped": {
                "body": b64(flip(body)),
                "resealed": {
                    "what": "another text under the sender's wraps, sealed as a frame by a member",
                    "payload": b64(payload[: -len(ct)] + other_ct),
                    "body": b64(b"\1" + sframe_seal(base_key, kid, 19, b"private", payload[: -len(ct)] + other_ct)),
                },
            },
        },
    )


def mispaddings(text):
    """Texts with a valid seal whose padding violates section 5.10: a receiver refuses each."""
    yield "no padding", text
    yield "a multiple of 64 bytes without the mark", text + bytes(-len(text) % 64)
    yield "64 zeros more than the shortest", padded(text) + bytes(64)
    yield "a byte behind the mark that is no zero", padded(text)[:-1] + b"\1"
    yield "the mark at another length than a multiple of 64", text + b"\x80"
    yield "nothing", b""


def statement_vector(label, signer, subject):
    data = vouch_bytes(label, signer.user, signer.fingerprint, subject.fingerprint, TIME)
    signature = signer.sign.sign(data)
    other = vouch_bytes(label, signer.user, signer.fingerprint, flip(subject.fingerprint), TIME)
    return {
        "user": signer.user,
        "by": signer.device,
        "device": subject.device,
        "signKey": b64(signer.sign.spki),
        "byFingerprint": b64(signer.fingerprint),
        "fingerprint": b64(subject.fingerprint),
        "at": TIME,
        "bytes": b64(data),
        "sigAlg": "ES256",
        "signature": b64(signature),
        "flipped": {"signature": b64(flip(signature)), "fingerprint": b64(flip(subject.fingerprint)), "bytes": b64(other)},
    }


def admission_vector(signer, user):
    data = admission_bytes(CALL, signer.fingerprint, user)
    signature = signer.sign.sign(data)
    word = {"user": user, "fingerprint": b64(signer.fingerprint), "sigAlg": "ES256", "signature": b64(signature)}
    return {
        "call": CALL,
        "signKey": b64(signer.sign.spki),
        "bytes": b64(data),
        "word": word,
        "flipped": {
            "signature": b64(flip(signature)),
            "bytesOfOtherCall": b64(admission_bytes(flip(CALL.encode()), signer.fingerprint, user)),
            "bytesOfOtherUser": b64(admission_bytes(CALL, signer.fingerprint, flip(user.encode()).decode())),
        },
    }


def link_vector(maker, newcomer):
    """A link, the word that makes it, and the word of a user who joins by it. Ed25519 signatures are always the same."""
    secret = fixed("link secret", 16)
    key = link_key(CALL, secret)
    raw = serialization.Encoding.Raw
    link = key.public_key().public_bytes(raw, serialization.PublicFormat.Raw)
    seed = key.private_bytes(raw, serialization.PrivateFormat.Raw, serialization.NoEncryption())
    made, joined = call_link_bytes(CALL, maker.fingerprint, link), link_join_bytes(CALL, link, newcomer.fingerprint, newcomer.user)
    made_signature, joined_signature = maker.sign.sign(made), key.sign(joined)
    return {
        "call": CALL,
        "secret": b64(secret),
        "seed": b64(seed),
        "link": b64(link),
        "shown": base64.urlsafe_b64encode(secret + maker.fingerprint).decode(),
        "id": lasting_link_id(maker.fingerprint, secret),
        "signKey": b64(maker.sign.spki),
        "madeBytes": b64(made),
        "made": {"link": b64(link), "fingerprint": b64(maker.fingerprint), "sigAlg": "ES256", "signature": b64(made_signature)},
        "joinedBytes": b64(joined),
        "joined": {"user": newcomer.user, "fingerprint": b64(newcomer.fingerprint), "link": b64(link), "signature": b64(joined_signature)},
        "flipped": {
            "secret": b64(flip(secret)),
            "seed": b64(hkdf512(flip(secret), CALL, b"conclave-link-secret-v1", 32)),
            "idOfOtherMaker": lasting_link_id(flip(maker.fingerprint), secret),
            "made": b64(flip(made_signature)),
            "joined": b64(flip(joined_signature)),
            "joinedBytesOfOtherLink": b64(link_join_bytes(CALL, flip(link), newcomer.fingerprint, newcomer.user)),
        },
    }


def waiting_link_vector(maker, member, guest):
    """A link whose guests wait, the word of a guest who comes by it, and the same word when a member has admitted the guest."""
    key = link_key(CALL, fixed("waiting link secret", 16))
    link = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    made = waiting_link_bytes(CALL, maker.fingerprint, link)
    admitted = guest_admission_bytes(CALL, member.fingerprint, link, guest.fingerprint, guest.user)
    made_signature, admitted_signature = maker.sign.sign(made), member.sign.sign(admitted)
    joined = key.sign(link_join_bytes(CALL, link, guest.fingerprint, guest.user))
    by = {"fingerprint": b64(member.fingerprint), "sigAlg": "ES256", "signature": b64(admitted_signature)}
    word = {"user": guest.user, "fingerprint": b64(guest.fingerprint), "link": b64(link), "signature": b64(joined)}
    return {
        "call": CALL,
        "link": b64(link),
        "signKey": b64(maker.sign.spki),
        "madeBytes": b64(made),
        "made": {"link": b64(link), "waits": True, "fingerprint": b64(maker.fingerprint), "sigAlg": "ES256", "signature": b64(made_signature)},
        "memberSignKey": b64(member.sign.spki),
        "admittedBytes": b64(admitted),
        "admitted": {**word, "admittedBy": by},
        "flipped": {
            "made": b64(flip(made_signature)),
            "admitted": b64(flip(admitted_signature)),
            "admittedBytesOfOtherGuest": b64(guest_admission_bytes(CALL, member.fingerprint, link, flip(guest.fingerprint), guest.user)),
        },
    }


def pairing_vector(new, existing):
    session, r_n, r_e = fixed("pair session", 16), fixed("pair nonce N"), fixed("pair nonce E")
    fps = new.fingerprint, existing.fingerprint
    data = pair_code_bytes(new.user, session, *fps, r_n, r_e)
    commit = pair_commit_bytes(session, fps[0], r_n)
    text = "conclave-device:" + base64.urlsafe_b64encode(fps[0]).decode().rstrip("=")
    bodies = [
        {"step": "commit", "commit": b64(sha256(commit))},
        {"step": "open", "fingerprint": b64(fps[1]), "nonce": b64(r_e)},
        {"step": "reveal", "fingerprint": b64(fps[0]), "nonce": b64(r_n)},
        {"step": "done"},
    ]
    return {
        "user": new.user,
        "newDevice": new.device,
        "existingDevice": existing.device,
        "session": b64(session),
        "newFingerprint": b64(fps[0]),
        "existingFingerprint": b64(fps[1]),
        "newNonce": b64(r_n),
        "existingNonce": b64(r_e),
        "commitBytes": b64(commit),
        "commit": b64(sha256(commit)),
        "codeBytes": b64(data),
        "code": pair_code_of(data),
        "scanned": text,
        "bodies": [{"session": b64(session)} | body for body in bodies],
        "flipped": {
            "newNonce": b64(flip(r_n)),
            "commit": b64(sha256(pair_commit_bytes(session, fps[0], flip(r_n)))),
            "code": pair_code_of(pair_code_bytes(new.user, session, *fps, flip(r_n), r_e)),
            "scanned": text[:-2] + ("A" if text[-2] != "A" else "B") + text[-1],
        },
    }


def make():
    alice, bob, carol = Device("alice", "phone", 1), Device("bob", "phone", 2), Device("carol", "tablet", 3)
    laptop, tablet = Device("alice", "laptop", 5), Device("bob", "tablet", 4)
    lists = [("fresh", True, [device.entry() for device in devices]) for devices in ([alice], [alice, bob], [alice, bob, carol], [alice, bob, carol])]
    lists[1] = ("ratchet", *lists[1][1:])
    lists[2] = ("ratchet", False, lists[2][2])
    chain = chain_of(lists)
    ring = chain_of([("fresh", True, [alice.entry(), bob.entry(ring=True), tablet.entry(ring=True)])])[0]
    list_hashes = [base64.b64decode(link["listHash"]) for link in chain]
    secret1, secret4 = fixed("secret of epoch 1"), fixed("secret of epoch 4")
    to_all, private = message_vectors(secret4, 4, list_hashes[3], alice, [bob, carol])
    kids = [(1, 1, 4), (2, 0, 1), (70000, 3, 256), (70000, 3, 511), (4294967295, 255, 4294967295)]
    return {
        "about": "Made by keys.py. Bytes are base64. `flipped` is the twin with one bit changed: it must give the other "
        "output that is stated there, or be refused. ES256 signatures are to be verified, not compared.",
        "devices": device_vectors([alice, laptop, bob, tablet, carol]),
        "joins": [join_vector(alice, 0), join_vector(bob, 0), join_vector(carol, 0), join_vector(bob, 1)],
        "roster": roster_vector(chain[3]["list"]),
        "chain": chain_vector(chain),
        "ringList": ring
        | {
            "call": CALL,
            "rosterBytes": b64(roster_bytes(ring["list"])),
            "flipped": {
                "call": flip(CALL.encode()).decode(),
                "listHash": b64(sha256(list_bytes(flip(CALL.encode()), 1, bytes(32), base64.b64decode(ring["rosterHash"])))),
            },
        },
        "ratchet": ratchet_vector(secret1, 2, list_hashes[1]),
        "sender": sender_vector(secret4, 4, list_hashes[3], bob),
        "envelopes": [
            envelope_vector(fixed("ring secret"), 1, alice, bob, bob.wrap, "wrap", base64.b64decode(ring["listHash"]), Key("ring ephemeral")),
            envelope_vector(secret4, 4, alice, bob, bob.keys[0], "join", list_hashes[3], Key("envelope ephemeral")),
            envelope_vector(secret4, 4, alice, bob, bob.keys[1], "refresh", list_hashes[3], Key("refresh ephemeral")),
        ],
        "confirmation": confirmation_vector(),
        "code": code_vector(chain[3]["list"]),
        "message": to_all,
        "privateMessage": private,
        "vouch": statement_vector(b"conclave-vouch-v1", alice, laptop),
        "revoke": statement_vector(b"conclave-revoke-v1", alice, laptop),
        "pairing": pairing_vector(laptop, alice),
        "admission": admission_vector(alice, "bob"),
        "root": admission_vector(alice, "alice"),
        "link": link_vector(alice, Device("guest~dave", "guest", 6)),
        "waitingLink": waiting_link_vector(alice, bob, Device("guest~dave", "guest", 6)),
        "kids": {
            "valid": [{"participant": p, "n": n, "epoch": e, "kid": kid_of(p, n, e), "flipped": kid_of(p, n ^ 1, e)} for p, n, e in kids],
            "refused": [{"participant": p, "n": n, "epoch": e} for p, n, e in ((0, 1, 1), (1 << 32, 1, 1), (1, 256, 1), (1, 1, 0), (1, 1, (1 << 32) + 2))],
        },
    }


# Checks


def check_primitives():
    """HPKE against RFC 9180 appendix A.3, base and auth mode; SFrame against RFC 9605 appendix C."""
    tests = HERE.parent
    done = 0
    for vector in json.loads((tests / "ConclaveClientTests/Vectors/rfc9180-subset.json").read_text()):
        if (vector["kem_id"], vector["aead_id"], vector["mode"]) not in ((16, 1, 0), (16, 1, 2)):
            continue
        raw = {name: bytes.fromhex(value) for name, value in vector.items() if name[:2] in ("sk", "in", "pk")}
        keys = {name: Key(scalar=int.from_bytes(raw[name], "big")) for name in raw if name[:2] == "sk"}
        sender = keys.get("skSm")
        first = vector["encryptions"][0] if isinstance(vector["encryptions"], list) else None
        aad, text, ct = (bytes.fromhex(first[name]) for name in ("aad", "pt", "ct"))
        sealed = hpke_seal(keys["skEm"], keys["skRm"].point, raw["info"], aad, text, sender, aead=1)
        assert sealed == bytes.fromhex(vector["enc"]) + ct, vector["mode_name"]
        assert hpke_open(keys["skRm"], raw["info"], aad, sealed, sender and sender.point, aead=1) == text
        done += 1
    assert done == 2
    sframe = json.loads((tests / "SFrameTests/Vectors/test-vectors.json").read_text())
    suite = [vector for vector in sframe["sframe"] if vector["cipher_suite"] == 5]
    assert suite
    for vector in suite:
        assert (
            sframe_seal(
                *(bytes.fromhex(vector["base_key"]), vector["kid"], vector["ctr"]), bytes.fromhex(vector["metadata"]), bytes.fromhex(vector["pt"])
            ).hex()
            == vector["ct"]
        )
    for vector in sframe["header"]:
        header = sframe_header(vector["kid"], vector["ctr"])
        assert header.hex() == vector["encoded"]
        assert sframe_numbers(header + b"sealed") == (vector["kid"], vector["ctr"], len(header))


def opens(action):
    try:
        return action()
    except InvalidTag:
        return None


def check_file(file):
    """Each device opens and verifies what another seals and signs in the file; the flipped twins fail."""
    raw = base64.b64decode
    for item in [*file["joins"], file["vouch"], file["revoke"]]:
        key, data, signature = raw(item["signKey"]), raw(item["bytes"]), raw(item["signature"])
        assert verify(key, data, signature)
        assert not verify(key, data, raw(item["flipped"]["signature"]))
        assert not verify(key, raw(item["flipped"]["bytes"]), signature)
    for item in file["envelopes"]:
        envelope, key = item["envelope"], Key(scalar=int.from_bytes(raw(item["sealedTo"]["privateScalar"]), "big"))
        assert verify(raw(item["signKey"]), raw(item["transcript"]), raw(envelope["signature"]))
        assert not verify(raw(item["signKey"]), raw(item["transcript"]), raw(item["flipped"]["signature"]))
        assert not verify(raw(item["signKey"]), raw(item["flipped"]["transcriptOfOtherKey"]), raw(envelope["signature"]))
        assert opens(lambda: hpke_open(key, raw(item["info"]), b"", raw(envelope["ciphertext"]))) == raw(item["secret"])
        assert opens(lambda: hpke_open(key, raw(item["info"]), b"", raw(item["flipped"]["ciphertext"]))) is None
    message = file["privateMessage"]
    for wrap in message["wraps"]:
        key = Key(scalar=int.from_bytes(raw(wrap["key"]["privateScalar"]), "big"))
        sender = raw(message["senderKey"]["publicPoint"])
        resealed = raw(message["flipped"]["resealed"]["payload"])[-len(raw(message["ct"])) :]
        other_aad = raw(message["aad"])[:32] + sha256(resealed)

        def opened(sealed, aad):
            return opens(lambda: hpke_open(key, raw(wrap["info"]), aad, sealed, sender))

        assert opened(raw(wrap["wrap"]), raw(message["aad"])) == raw(message["contentKey"])
        assert opened(raw(wrap["flipped"]), raw(message["aad"])) is None
        assert opened(raw(wrap["wrap"]), other_aad) is None


def without_signatures(value, key=None):
    if isinstance(value, dict):
        return {name: without_signatures(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_signatures(inner) for inner in value]
    return None if key == "signature" else value


def check():
    check_primitives()
    file = json.loads(FILE.read_text())
    check_file(file)
    for entry in [*file["roster"]["entries"], *file["confirmation"]["list"]]:
        user = Device(entry["user"], entry["device"], entry["participant"])
        assert verify(user.sign.spki, user.join_bytes(), base64.b64decode(entry["joinKey"]["signature"]))
    assert without_signatures(file) == without_signatures(make()), "keys.json is not what keys.py makes: run keys.py"


def test_the_vectors_are_what_the_layouts_give():
    check()


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        check()
        print("keys.json is right")
    else:
        check_primitives()
        FILE.write_text(json.dumps(make(), indent=1) + "\n")

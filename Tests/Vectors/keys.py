#!/usr/bin/env python3
"""The byte layouts of key agreement (docs/protocol.md section 5), implemented apart from both clients.

`keys.py` writes keys.json, `keys.py --check` shows that keys.json is what this file makes. All private keys are SHA-256 of an ASCII string, so the output never
changes. ES256 signatures are verified instead of compared: any valid signature is right.
"""

import base64
import hashlib
import hmac
import json
import pathlib
import sys

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

HERE = pathlib.Path(__file__).parent
FILE = HERE / "keys.json"
CALL = "7d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d5"
HPKE = "HPKE-P256-SHA256-AES256GCM"
TIME = 1_800_000_000_000
P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


# Bytes


def b64(data):
    return base64.b64encode(data).decode()


def lp(data):
    data = data.encode() if isinstance(data, str) else data
    assert len(data) < 1 << 16
    return len(data).to_bytes(2, "big") + data


def u8(number):
    return number.to_bytes(1, "big")


def u32(number):
    return number.to_bytes(4, "big")


def u64(number):
    return number.to_bytes(8, "big")


def sha256(data):
    return hashlib.sha256(data).digest()


def flip(data, bit=0):
    """The same bytes with one bit changed; bit 0 is the lowest bit of the last byte."""
    changed = bytearray(data)
    changed[-1 - bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def fixed(name, length=32):
    """Bytes that stand for random ones."""
    return hashlib.sha512(f"conclave vector {name}".encode()).digest()[:length]


# HKDF (RFC 5869)


def extract(hash_name, salt, ikm):
    return hmac.new(salt or bytes(hashlib.new(hash_name).digest_size), ikm, hash_name).digest()


def expand(hash_name, key, info, length):
    output, block = b"", b""
    for number in range(1, 256):
        if len(output) >= length:
            break
        block = hmac.new(key, block + info + u8(number), hash_name).digest()
        output += block
    return output[:length]


def hkdf512(secret, salt, info, length):
    return expand("sha512", extract("sha512", salt.encode(), secret), info, length)


# P-256 keys


class Key:
    def __init__(self, name=None, scalar=None):
        scalar = scalar or int.from_bytes(sha256(f"conclave vector {name}".encode()), "big") % (P256_ORDER - 1) + 1
        self.private = ec.derive_private_key(scalar, ec.SECP256R1())
        self.scalar = scalar.to_bytes(32, "big")
        public = self.private.public_key()
        self.point = public.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        self.spki = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self.pkcs8 = self.private.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())

    def sign(self, data):
        """ES256 (RFC 7518 section 3.4) with the nonce of RFC 6979."""
        der = self.private.sign(data, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))
        r, s = decode_dss_signature(der)
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    def json(self):
        return {"privateScalar": b64(self.scalar), "privatePKCS8": b64(self.pkcs8), "publicKey": b64(self.spki), "publicPoint": b64(self.point)}


def verify(spki, data, signature):
    der = encode_dss_signature(int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big"))
    try:
        serialization.load_der_public_key(spki).verify(der, data, ec.ECDSA(hashes.SHA256()))
        return len(signature) == 64
    except InvalidSignature:
        return False


def agree(private, point):
    return private.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point))


# HPKE with DHKEM(P-256, HKDF-SHA256), HKDF-SHA256 (RFC 9180), base (0) and auth (2) mode


def labeled_extract(suite, salt, label, ikm):
    return extract("sha256", salt, b"HPKE-v1" + suite + label + ikm)


def labeled_expand(suite, key, label, info, length):
    return expand("sha256", key, length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info, length)


def hpke_key(dh, context, info, mode, aead):
    """Shared secret (section 4.1), then key schedule (5.1) without PSK: key and base nonce."""
    kem = b"KEM" + (16).to_bytes(2, "big")
    shared = labeled_expand(kem, labeled_extract(kem, b"", b"eae_prk", dh), b"shared_secret", context, 32)
    suite = b"HPKE" + b"".join(part.to_bytes(2, "big") for part in (16, 1, aead))
    schedule = u8(mode) + labeled_extract(suite, b"", b"psk_id_hash", b"") + labeled_extract(suite, b"", b"info_hash", info)
    secret = labeled_extract(suite, shared, b"secret", b"")
    return (labeled_expand(suite, secret, b"key", schedule, {1: 16, 2: 32}[aead]), labeled_expand(suite, secret, b"base_nonce", schedule, 12))


def hpke_seal(ephemeral, recipient, info, aad, text, sender=None, aead=2):
    dh, context = agree(ephemeral.private, recipient), ephemeral.point + recipient
    if sender:
        dh, context = dh + agree(sender.private, recipient), context + sender.point
    key, nonce = hpke_key(dh, context, info, 2 if sender else 0, aead)
    return ephemeral.point + AESGCM(key).encrypt(nonce, text, aad)


def hpke_open(recipient, info, aad, sealed, sender=None, aead=2):
    enc, ct = sealed[:65], sealed[65:]
    dh, context = agree(recipient.private, enc), enc + recipient.point
    if sender:
        dh, context = dh + agree(recipient.private, sender), context + sender
    key, nonce = hpke_key(dh, context, info, 2 if sender else 0, aead)
    return AESGCM(key).decrypt(nonce, ct, aad)


# SFrame (RFC 9605), suite 5: AES_256_GCM_SHA512_128


def sframe_header(kid, ctr):
    """Section 4.3: config byte, then KID and CTR in as few bytes as they need."""
    kid_bytes, ctr_bytes = (number.to_bytes(max(1, (number.bit_length() + 7) // 8), "big") for number in (kid, ctr))
    config = (kid if kid < 8 else 8 + len(kid_bytes) - 1) << 4 | (ctr if ctr < 8 else 8 + len(ctr_bytes) - 1)
    return u8(config) + (b"" if kid < 8 else kid_bytes) + (b"" if ctr < 8 else ctr_bytes)


def sframe_seal(base_key, kid, ctr, metadata, text):
    secret = extract("sha512", b"", base_key)
    key = expand("sha512", secret, b"SFrame 1.0 Secret key " + u64(kid) + b"\0\5", 32)
    salt = expand("sha512", secret, b"SFrame 1.0 Secret salt " + u64(kid) + b"\0\5", 12)
    nonce = bytes(a ^ b for a, b in zip(salt, ctr.to_bytes(12, "big")))
    header = sframe_header(kid, ctr)
    return header + AESGCM(key).encrypt(nonce, text, header + metadata)


def kid_of(participant, n, epoch):
    assert 1 <= participant < 1 << 32 and 0 <= n <= 255 and 1 <= epoch < 1 << 32
    return participant * 65536 + n * 256 + epoch % 256


# Devices and joins


def fingerprint_bytes(user, device, wrap_alg, wrap, sign_alg, sign):
    return b"conclave-device-v1" + lp(user) + lp(device) + lp(wrap_alg) + lp(wrap) + lp(sign_alg) + lp(sign)


def join_bytes(call, fingerprint, join_id, generation, at, alg, spki):
    return b"conclave-join-v2" + lp(call) + fingerprint + join_id + u32(generation) + u64(at) + lp(alg) + lp(spki)


class Device:
    """A device in the one call of this file: its long-lived keys, its stay and its join keys."""

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


# List, chain, code


def entry_bytes(entry):
    key = entry.get("joinKey")
    return (
        lp(entry["user"])
        + lp(entry["device"])
        + u32(entry["participant"])
        + base64.b64decode(entry["fingerprint"])
        + base64.b64decode(entry.get("joinId", b64(bytes(16))))
        + (sha256(base64.b64decode(key["publicKey"])) if key else bytes(32))
    )


def roster_bytes(entries):
    names = [(entry["user"].encode(), entry["device"].encode()) for entry in entries]
    assert names == sorted(set(names))
    return b"conclave-roster-v2" + u32(len(entries)) + b"".join(map(entry_bytes, entries))


def list_bytes(call, epoch, previous, roster_hash):
    return b"conclave-list-v2" + lp(call) + u32(epoch) + previous + roster_hash


def code_bytes(call, roster_hash):
    return b"conclave-code-v2" + lp(call) + roster_hash


def code_of(call, roster_hash):
    return f"{int.from_bytes(sha256(code_bytes(call, roster_hash)), 'big') % 10**40:040}"


# Secrets, envelope, confirmation, messages, vouching


def ratchet_info(epoch, list_hash):
    return b"conclave-ratchet-v2" + u32(epoch) + list_hash


def sender_info(epoch, list_hash, participant, fingerprint, join_id):
    return b"conclave-sender-v2" + u32(epoch) + list_hash + u32(participant) + fingerprint + join_id


def transcript_of(call, epoch, sender, to, alg, key, ciphertext, list_hash):
    names = b"".join(map(lp, (*sender, *to)))
    return b"conclave-envelope-v2" + lp(call) + u32(epoch) + names + lp(alg) + key + sha256(ciphertext) + list_hash


def confirm_info(epoch, list_hash):
    return b"conclave-confirm-v2" + u32(epoch) + list_hash


def tag_of(key, participant, fingerprint, join_id):
    return hmac.new(key, u32(participant) + fingerprint + join_id, "sha256").digest()[:16]


def bucket_of(index, tags):
    """`tags` by place in the list. Entry 64b+i is bit 63-i of `who`."""
    who, total = 0, bytes(16)
    for place, tag in tags.items():
        if place // 64 == index:
            who |= 1 << 63 - place % 64
            total = bytes(a ^ b for a, b in zip(total, tag))
    return {"index": index, "who": b64(u64(who)), "tag": b64(total)}


def message_info(call, list_hash, sender, recipient):
    return b"conclave-message-v2" + lp(call) + list_hash + u32(sender) + u32(recipient)


def vouch_bytes(label, user, signer, subject, at):
    return label + lp(user) + signer + subject + u64(at)


def pair_commit_bytes(session, fingerprint, nonce):
    return b"conclave-pair-commit-v1" + session + fingerprint + nonce


def pair_code_bytes(user, session, fp_n, fp_e, r_n, r_e):
    return b"conclave-pair-code-v1" + lp(user) + session + fp_n + fp_e + r_n + r_e


def pair_code_of(data):
    return f"{int.from_bytes(sha256(data)[:8], 'big') % 10**6:06}"


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
    ct = AESGCM(content_key).encrypt(bytes(12), text, None)
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
    other_ct = AESGCM(content_key).encrypt(bytes(12), flip(text), None)
    to_all = b"\0" + sframe_seal(base_key, kid, 18, b"message", b'{"text":"for all"}')
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
            "text": b64(b'{"text":"for all"}'),
            "body": b64(to_all),
            "flipped": {"body": b64(flip(to_all)), "otherKind": b64(b"\1" + to_all[1:])},
        },
        shared
        | {
            "ctr": 17,
            "metadata": b64(b"private"),
            "text": b64(text),
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
        assert sframe_header(vector["kid"], vector["ctr"]).hex() == vector["encoded"]


def opens(action):
    try:
        return action()
    except InvalidTag:
        return None


def check_file(file):
    """What one device seals or signs in the file, the other opens or verifies; the flipped twins fail."""
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

"""The byte layouts of key agreement (docs/protocol.md section 5) and what they rest on, HPKE (RFC 9180) and SFrame (RFC 9605), apart from both clients."""

import base64
import hashlib
import hmac

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

HPKE = "HPKE-P256-SHA256-AES256GCM"
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


def sframe_numbers(frame):
    """KID, CTR and the length of the header in front of them; ValueError if one is not in as few bytes as it needs."""
    kid, ctr, at = frame[0] >> 4, frame[0] & 15, 1
    if kid > 7:
        kid, at = int.from_bytes(frame[at : at + kid - 7], "big"), at + kid - 7
    if ctr > 7:
        ctr, at = int.from_bytes(frame[at : at + ctr - 7], "big"), at + ctr - 7
    if frame[:at] != sframe_header(kid, ctr):
        raise ValueError("an SFrame header that is cut short or not in its shortest form")
    return kid, ctr, at


def sframe_key(base_key, kid):
    return expand("sha512", extract("sha512", b"", base_key), b"SFrame 1.0 Secret key " + u64(kid) + b"\0\5", 32)


def sframe_nonce(base_key, kid, ctr):
    salt = expand("sha512", extract("sha512", b"", base_key), b"SFrame 1.0 Secret salt " + u64(kid) + b"\0\5", 12)
    return bytes(a ^ b for a, b in zip(salt, ctr.to_bytes(12, "big")))


def sframe_seal(base_key, kid, ctr, metadata, text):
    header = sframe_header(kid, ctr)
    return header + AESGCM(sframe_key(base_key, kid)).encrypt(sframe_nonce(base_key, kid, ctr), text, header + metadata)


def sframe_open(base_key, kid, ctr, metadata, sealed):
    header = sframe_header(kid, ctr)
    assert sealed.startswith(header)
    return AESGCM(sframe_key(base_key, kid)).decrypt(sframe_nonce(base_key, kid, ctr), sealed[len(header) :], header + metadata)


def kid_of(participant, n, epoch):
    assert 1 <= participant < 1 << 32 and 0 <= n <= 255 and 1 <= epoch < 1 << 32
    return participant * 65536 + n * 256 + epoch % 256


# Devices and joins


def fingerprint_bytes(user, device, wrap_alg, wrap, sign_alg, sign):
    return b"conclave-device-v1" + lp(user) + lp(device) + lp(wrap_alg) + lp(wrap) + lp(sign_alg) + lp(sign)


def join_bytes(call, fingerprint, join_id, generation, at, alg, spki):
    return b"conclave-join-v2" + lp(call) + fingerprint + join_id + u32(generation) + u64(at) + lp(alg) + lp(spki)


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
    """`entries` are in the order of their user, then device, as bytes."""
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


def padded(text):
    """A message's text at a multiple of 64 bytes (5.10)."""
    return text + b"\x80" + bytes(-(len(text) + 1) % 64)


def unpadded(data):
    """The text of a padded message; raises for any other padding than the shortest."""
    text, mark, zeros = data.rpartition(b"\x80")
    if not mark or any(zeros) or padded(text) != data:
        raise ValueError("a message without its padding")
    return text


def message_info(call, list_hash, sender, recipient):
    return b"conclave-message-v2" + lp(call) + list_hash + u32(sender) + u32(recipient)


def vouch_bytes(label, user, signer, subject, at):
    return label + lp(user) + signer + subject + u64(at)


def admission_bytes(call, signer, user):
    return b"conclave-admission-v1" + lp(call) + signer + lp(user)


def call_link_bytes(call, signer, link):
    return b"conclave-call-link-v1" + lp(call) + signer + link


def waiting_link_bytes(call, signer, link):
    return b"conclave-waiting-link-v1" + lp(call) + signer + link


def guest_admission_bytes(call, signer, link, guest, user):
    """`guest` is the fingerprint of the guest's device."""
    return b"conclave-guest-admission-v1" + lp(call) + signer + link + guest + lp(user)


def link_join_bytes(call, link, fingerprint, user):
    return b"conclave-link-join-v1" + lp(call) + link + fingerprint + lp(user)


def link_key(call, secret):
    """The Ed25519 private key of a call's link."""
    return ed25519.Ed25519PrivateKey.from_private_bytes(hkdf512(secret, call, b"conclave-link-secret-v1", 32))


def pair_commit_bytes(session, fingerprint, nonce):
    return b"conclave-pair-commit-v1" + session + fingerprint + nonce


def pair_code_bytes(user, session, fp_n, fp_e, r_n, r_e):
    return b"conclave-pair-code-v1" + lp(user) + session + fp_n + fp_e + r_n + r_e


def pair_code_of(data):
    return f"{int.from_bytes(sha256(data)[:8], 'big') % 10**6:06}"


def lasting_link_id(maker, secret):
    """The id of a lasting link, which is all that a server gets of it. `maker` is the fingerprint of the device that made it."""
    made = expand("sha512", extract("sha512", maker, secret), b"conclave-lasting-link-v1", 16)
    return base64.urlsafe_b64encode(made).decode().rstrip("=")

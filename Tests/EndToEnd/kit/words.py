"""The words that let people into calls, and the secrets of links, written only from the protocol's text (section 5.13)."""

import base64
import hashlib
import hmac
import os
import re

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

# The secrets of the links that devices made here, by the link's public key and by the server's token: people get both in one address.
SECRETS = {}


def b64(data):
    return base64.b64encode(data).decode()


def lp(text):
    return len(text.encode()).to_bytes(2, "big") + text.encode()


class SignKey:
    """A device's signing key, for ES256, PS256 or EdDSA."""

    def __init__(self, alg="ES256", bits=2048, private=None):
        self.alg = alg
        makers = {
            "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
            "PS256": lambda: rsa.generate_private_key(65537, bits),
            "EdDSA": ed25519.Ed25519PrivateKey.generate,
        }
        self.private = private or makers[alg]()
        self.spki = self.private.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)

    def sign(self, data):
        if self.alg == "EdDSA":
            return self.private.sign(data)
        if self.alg == "PS256":
            return self.private.sign(data, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())
        r, s = decode_dss_signature(self.private.sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def signed(key, fingerprint, data):
    return {"fingerprint": b64(fingerprint), "sigAlg": key.alg, "signature": b64(key.sign(data))}


def admission(key, fingerprint, call, user):
    """The word by which a member lets a user in."""
    return {"user": user, **signed(key, fingerprint, b"conclave-admission-v1" + lp(call) + fingerprint + lp(user))}


def admissions(key, fingerprint, call, users):
    return [admission(key, fingerprint, call, user) for user in users]


def link_key(secret, call):
    """The link's private key: its seed is one block of HKDF-SHA-512."""
    extracted = hmac.new(call.encode(), secret, hashlib.sha512).digest()
    seed = hmac.new(extracted, b"conclave-link-secret-v1\x01", hashlib.sha512).digest()[:32]
    return ed25519.Ed25519PrivateKey.from_private_bytes(seed)


def lasting_id(secret, fingerprint):
    """The id of a lasting link: the only part of it that a server gets."""
    extracted = hmac.new(fingerprint, secret, hashlib.sha512).digest()
    block = hmac.new(extracted, b"conclave-lasting-link-v1\x01", hashlib.sha512).digest()
    return base64.urlsafe_b64encode(block[:16]).decode().rstrip("=")


def public(key):
    return key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def link_word(key, fingerprint, call, secret, waits=False):
    """The word by which a member makes a link. With `waits`, guests enter only after a member has admitted them."""
    link = public(link_key(secret, call))
    SECRETS[b64(link)] = secret
    label = b"conclave-waiting-link-v1" if waits else b"conclave-call-link-v1"
    return {"link": b64(link), **({"waits": True} if waits else {}), **signed(key, fingerprint, label + lp(call) + fingerprint + link)}


def admitted(key, fingerprint, call, word):
    """A member admits the guest whose word it is."""
    link, guest = base64.b64decode(word["link"]), base64.b64decode(word["fingerprint"])
    data = b"conclave-guest-admission-v1" + lp(call) + fingerprint + link + guest + lp(word["user"])
    return {**word, "admittedBy": signed(key, fingerprint, data)}


def join_word(fingerprint, call, secret, user):
    """The word of a user who joins by a link."""
    key = link_key(secret, call)
    signature = key.sign(b"conclave-link-join-v1" + lp(call) + public(key) + fingerprint + lp(user))
    return {"user": user, "fingerprint": b64(fingerprint), "link": b64(public(key)), "signature": b64(signature)}


def with_words(destination, body, user, key, fingerprint):
    """The body of a request with the words that it needs, unless it has its own. A device without keys sends none."""
    what = re.fullmatch(r"/app/calls/(?:(start)|([^/]+)/(invite|link|join|knock))", destination)
    body = {} if what and body is None else body
    if not what or not key or not fingerprint or not isinstance(body, dict) or body.keys() & {"admissions", "admission", "as", "revoke"}:
        return body
    start, call, request = what.groups()
    call = body.get("id") if start else call
    callees = body.get("callees", [])
    if not isinstance(call, str) or not isinstance(callees, list) or not all(isinstance(callee, str) for callee in callees):
        return body
    if start or request == "invite":
        users = dict.fromkeys([*callees, *([user] if start else [])])
        return {**body, "admissions": admissions(key, fingerprint, call, users)}
    if request == "link":
        return {**body, "admission": link_word(key, fingerprint, call, os.urandom(16))}
    if "link" in body:
        return {**body, "admission": join_word(fingerprint, call, SECRETS.get(body["link"], bytes(16)), user)}
    return body


def remember(body, reply):
    """The reply to a request for a link names the token that goes with its secret."""
    if isinstance(body, dict) and "admission" in body and "link" in reply:
        SECRETS[reply["link"]] = SECRETS.get(body["admission"]["link"])

"""Tokens that strangers make up: the server refuses each, and survives. It accepts only what protocol section 2 allows."""

import base64
import hashlib
import hmac
import json
import time

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

import jwt_forge
from conftest import Server, wait_for
from device import Wire

NOW = int(time.time())
CLAIMS = {"sub": "eve", "exp": NOW + 3600}


def answer(server, token):
    """The command of the server's answer to a CONNECT with this token."""
    wire = Wire(server)
    wire.send("CONNECT", {"accept-version": "1.2", "host": "x", "passcode": token})
    frame = wire.read()
    if frame.command == "ERROR":
        assert frame.headers["message"] == "Bad CONNECT: authentication failed"
    wire.close()
    return frame.command


def raw(header, payload, signature):
    """Parts are bytes, or values that become JSON."""
    return ".".join(jwt_forge.encode(part) for part in (header, payload, signature))


def test_a_token_with_an_empty_audience_does_not_end_the_server(fresh_server):
    before = fresh_server.pid
    token = raw({"alg": "HS256", "typ": "JWT"}, b'{"sub":"x","exp":9000000000,"aud":[]}', b"\0")
    assert answer(fresh_server, token) == "ERROR"
    assert fresh_server.process.poll() is None and fresh_server.pid == before
    assert answer(fresh_server, fresh_server.token("alice")) == "CONNECTED"
    # With the right signature it is a token like any other: with a shared secret the audience is not checked.
    secret = (fresh_server.state / "secret").read_text().strip()
    assert answer(fresh_server, jwt_forge.sign(secret, {**CLAIMS, "aud": []})) == "CONNECTED"


DEEP = b'{"sub":"eve","exp":%d,"x":' % (NOW + 600) + b"[" * 2500 + b"]" * 2500 + b"}"
REFUSED_CLAIMS = {
    "expired": {"exp": NOW - 1},
    "no exp": {"exp": None},
    "exp as text": {"exp": str(NOW + 600)},
    "exp in ms": {"exp": NOW * 1000},
    "exp 9e9": {"exp": 9000000000},
    "exp 1e308": {"exp": 1e308},
    "exp -1e308": {"exp": -1e308},
    "nbf in an hour": {"nbf": NOW + 3600},
    "nbf 1e308": {"nbf": 1e308},
    "sub empty": {"sub": ""},
    "sub too long": {"sub": "a" * 129},
    "sub with a slash": {"sub": "a/b"},
    "sub not ASCII": {"sub": "\u0430"},
    "sub with a line": {"sub": "a\nrole:x"},
    "sub a number": {"sub": 5},
    "sub a list": {"sub": ["eve"]},
    "bad device": {"device": "a b"},
    "NUL in the name": {"name": "a\0b"},
}


@pytest.mark.parametrize("claims", REFUSED_CLAIMS.values(), ids=REFUSED_CLAIMS)
def test_signed_claims_are_read_strictly(server, claims):
    assert answer(server, signed(server, {**CLAIMS, **claims})) == "ERROR"


def signed(server, payload, header=None, key=None):
    key = (server.state / "secret").read_text().strip().encode() if key is None else key
    header = {"alg": "HS256", "typ": "JWT"} if header is None else header
    text = f"{jwt_forge.encode(header)}.{jwt_forge.encode(payload)}"
    return f"{text}.{jwt_forge.encode(hmac.new(key, text.encode(), hashlib.sha256).digest())}"


REFUSED_HEADERS = {
    "alg missing": {"typ": "JWT"},
    "alg none": {"alg": "none"},
    "alg nOnE": {"alg": "nOnE"},
    "alg HS384 over HS256": {"alg": "HS384"},
    "alg RS256": {"alg": "RS256"},
    "alg a list": {"alg": ["HS256"]},
    "alg null": {"alg": None},
    "kid an object": {"alg": "HS256", "kid": {}},
    "crit": {"alg": "HS256", "crit": ["zz"], "zz": 1},
    "crit empty": {"alg": "HS256", "crit": []},
    "a list": [],
}


@pytest.mark.parametrize("header", REFUSED_HEADERS.values(), ids=REFUSED_HEADERS)
def test_the_header_is_the_keys_own(server, header):
    assert answer(server, signed(server, CLAIMS, header)) == "ERROR"


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "HS256", "kid": "../../../../dev/null"},
        {"alg": "HS256", "jku": "http://127.0.0.1:1/"},
        {"alg": "HS256", "jwk": {"kty": "oct", "k": base64.b64encode(b"x" * 32).decode()}},
    ],
    ids=["kid", "jku", "jwk"],
)
def test_a_token_does_not_choose_its_key(server, header):
    for key in b"", b"x" * 32:
        assert answer(server, signed(server, CLAIMS, header, key)) == "ERROR"


def test_malformed_tokens_are_refused(server):
    good = signed(server, CLAIMS)
    head, payload, _ = good.split(".")
    twice = b'{"sub":"eve","sub":"admin","exp":%d}' % (NOW + 600)
    bad = [
        f"{head}.{payload}.", good[:-4], good + ".x", f"{head}.{payload}", "." * 8000, ".", "=".join(good.split(".")),
        "Bearer " + good, "!!.!!.!!", signed(server, twice), signed(server, DEEP), signed(server, [1]),
        raw(b'{"alg":"HS256","x":' + b"[" * 2500 + b"]" * 2500 + b"}", CLAIMS, b"x"),
        raw({"alg": "none"}, CLAIMS, b""),
        raw({"alg": "HS256"}, b'{"sub":"eve","exp":1e400}', b"x"),
        signed(server, CLAIMS, key=b"x" * 32), signed(server, CLAIMS, key=b""),
    ]  # fmt: skip
    for token in bad:
        assert answer(server, token) == "ERROR", token[:200]
    assert answer(server, good) == "CONNECTED"


# A key set


@pytest.fixture(scope="module")
def keys():
    return {"r1": rsa.generate_private_key(65537, 2048), "e1": ec.generate_private_key(ec.SECP256R1())}


def number(value, length):
    return jwt_forge.encode(value.to_bytes(length, "big"))


def jwks(keys):
    members = []
    for kid, key in keys.items():
        public = key.public_key().public_numbers()
        if isinstance(key, rsa.RSAPrivateKey):
            members.append({"kty": "RSA", "kid": kid, "n": number(public.n, 256), "e": number(public.e, 3)})
        else:
            x, y = number(public.x, 32), number(public.y, 32)
            members.append({"kty": "EC", "crv": "P-256", "kid": kid, "x": x, "y": y})
    return json.dumps({"keys": members})


@pytest.fixture(scope="module")
def key_server(tmp_path_factory, keys):
    folder = tmp_path_factory.mktemp("keys")
    (folder / "jwks.json").write_text(jwks(keys))
    auth = {"jwksFile": str(folder / "jwks.json"), "issuer": "https://id.example", "audience": "conclave"}
    running = Server(folder, auth=auth)
    yield running
    running.stop()


def by(key, header, claims, raw_signature=None):
    text = f"{jwt_forge.encode(header)}.{jwt_forge.encode(claims)}"
    if isinstance(key, rsa.RSAPrivateKey):
        signature = key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
    else:
        r, s = utils.decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    return f"{text}.{jwt_forge.encode(signature if raw_signature is None else raw_signature)}"


GOOD = {**CLAIMS, "iss": "https://id.example", "aud": "conclave"}


def test_a_key_set_takes_its_own_keys_tokens_alone(key_server, keys):
    r, e = {"alg": "RS256", "kid": "r1"}, {"alg": "ES256", "kid": "e1"}
    without = {name: {k: v for k, v in GOOD.items() if k != name} for name in ("iss", "aud")}
    good = [by(keys["r1"], r, GOOD), by(keys["e1"], e, GOOD), by(keys["r1"], r, {**GOOD, "aud": ["x", "conclave"]})]
    bad = {
        "no kid": by(keys["r1"], {"alg": "RS256"}, GOOD),
        "HS by the set's text": signed(key_server, GOOD, {"alg": "HS256"}, jwks(keys).encode()),
        "RS signature, kid of EC": by(keys["r1"], {"alg": "RS256", "kid": "e1"}, GOOD),
        "alg ES, RS signature": by(keys["r1"], {"alg": "ES256", "kid": "r1"}, GOOD),
        "alg RS384 over RS256": by(keys["r1"], {"alg": "RS384", "kid": "r1"}, GOOD),
        "zeros (CVE-2022-21449)": by(keys["e1"], e, GOOD, b"\0" * 64),
        "no signature": by(keys["e1"], e, GOOD, b""),
        "DER signature": by(keys["e1"], e, GOOD, b"\x30\x06\x02\x01\x00\x02\x01\x00"),
        "unknown kid": by(keys["r1"], {"alg": "RS256", "kid": "zz"}, GOOD),
        "kid path": by(keys["r1"], {"alg": "RS256", "kid": "../r1"}, GOOD),
        "wrong issuer": by(keys["r1"], r, {**GOOD, "iss": "https://evil"}),
        "no issuer": by(keys["r1"], r, without["iss"]),
        "wrong audience": by(keys["r1"], r, {**GOOD, "aud": "other"}),
        "no audience": by(keys["r1"], r, without["aud"]),
        "empty audience": by(keys["r1"], r, {**GOOD, "aud": []}),
        "expired": by(keys["r1"], r, {**GOOD, "exp": NOW - 5}),
        "none": raw({"alg": "none", "kid": "r1"}, GOOD, b""),
        "crit": by(keys["r1"], {**r, "crit": ["b64"], "b64": False}, GOOD),
    }
    for token in good:
        assert answer(key_server, token) == "CONNECTED"
    for name, token in bad.items():
        assert answer(key_server, token) == "ERROR", name


def test_a_key_that_is_taken_out_of_the_file_is_good_no_more(tmp_path, keys):
    file = tmp_path / "jwks.json"
    file.write_text(jwks(keys))
    running = Server(
        tmp_path, auth={"jwksFile": str(file), "issuer": "https://id.example", "audience": "conclave"}
    )
    try:
        old = by(keys["r1"], {"alg": "RS256", "kid": "r1"}, GOOD)
        assert answer(running, old) == "CONNECTED"
        file.write_text("half of a ne")
        fresh = ec.generate_private_key(ec.SECP256R1())
        new = by(fresh, {"alg": "ES256", "kid": "e2"}, GOOD)
        assert answer(running, new) == "ERROR"
        file.write_text(jwks({"e2": fresh}))
        wait_for(lambda: answer(running, new) == "CONNECTED", 15, "the new key is good")
        assert answer(running, old) == "ERROR"
    finally:
        running.stop()

"""Tokens, valid and invalid, made by hand so that the server's library is not tested with itself."""

import base64
import hashlib
import hmac
import json
import time


def encode(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def claims(expires_in):
    return {"sub": "mallory", "device": "laptop", "exp": int(time.time()) + expires_in}


def none():
    return f"{encode({'alg': 'none', 'typ': 'JWT'})}.{encode(claims(60))}."


def sign(secret, payload):
    signed = f"{encode({'alg': 'HS256', 'typ': 'JWT'})}.{encode(payload)}"
    return f"{signed}.{encode(hmac.new(secret.encode(), signed.encode(), hashlib.sha256).digest())}"


def hs256(secret, expires_in=60):
    return sign(secret, claims(expires_in))

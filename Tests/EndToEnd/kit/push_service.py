"""A push service for tests: it accepts what the server sends, and decrypts it like a browser (RFC 8291), without the project's code."""

import base64
import http.server
import json
import os
import ssl
import subprocess
import threading

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


def base64_of(data):
    return base64.b64encode(data).decode()


def from_base64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def point(key):
    return key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


def derive(salt, secret, info, length):
    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)


class Subscription:
    """A browser's keys and its endpoint."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.auth = os.urandom(16)

    @property
    def body(self):
        return {"endpoint": self.endpoint, "p256dh": base64_of(point(self.key.public_key())), "auth": base64_of(self.auth)}

    def decrypt(self, message):
        salt, size, length = message[:16], int.from_bytes(message[16:20], "big"), message[20]
        sender, record = message[21 : 21 + length], message[21 + length :]
        assert len(record) <= size, "one record"
        secret = self.key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
        mixed = derive(self.auth, secret, b"WebPush: info\0" + point(self.key.public_key()) + sender, 32)
        key, nonce = (derive(salt, mixed, b"Content-Encoding: " + name + b"\0", count) for name, count in ((b"aes128gcm", 16), (b"nonce", 12)))
        plain = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\0")
        assert plain.endswith(b"\2"), "the last record"
        return json.loads(plain[:-1])


class PushService:
    """HTTPS on a loopback port. `statuses` are the answers to the next pushes; all others get 201."""

    def __init__(self, folder):
        self.pushes, self.statuses = [], []
        self.certificate, key = str(folder / "push.pem"), str(folder / "push.key")
        made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=push -addext subjectAltName=IP:127.0.0.1".split()
        subprocess.run([*made, "-keyout", key, "-out", self.certificate], check=True, capture_output=True)
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                service.pushes.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(service.statuses.pop(0) if service.statuses else 201)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.origin = f"https://127.0.0.1:{self.server.server_port}"

    @property
    def configuration(self):
        return {"contact": "mailto:tests@example.org", "networks": ["127.0.0.1"], "trust": self.certificate}

    def subscription(self, name):
        return Subscription(f"{self.origin}/{name}")

    def of(self, name):
        """The pushes to the endpoint of this name."""
        return [(headers, body) for path, headers, body in list(self.pushes) if path == f"/{name}"]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def check_signature(header, key, origin, now):
    """Checks `Authorization` (RFC 8292)."""
    scheme, rest = header.split(" ", 1)
    parameters = dict(part.strip().split("=", 1) for part in rest.split(","))
    assert scheme == "vapid" and from_base64url(parameters["k"]) == key
    signed, signature = parameters["t"].rsplit(".", 1)
    raw = from_base64url(signature)
    der = utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key).verify(der, signed.encode(), ec.ECDSA(hashes.SHA256()))
    head, claims = (json.loads(from_base64url(part)) for part in signed.split("."))
    assert head == {"typ": "JWT", "alg": "ES256"}
    assert claims["aud"] == origin and claims["sub"] == "mailto:tests@example.org" and now < claims["exp"] <= now + 86_400

"""The JSON Schema of the configuration: it refuses what the server refuses, the chart includes it, and docs/deploy.md names each member."""

import json
import pathlib
import re
import subprocess

import jsonschema
import pytest

from conftest import BINARY, PATIENCE

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def schema():
    run = subprocess.run([BINARY, "config-schema"], capture_output=True, text=True, check=True, timeout=30 * PATIENCE)
    schema = json.loads(run.stdout)
    jsonschema.Draft7Validator.check_schema(schema)
    return schema


SECRET = "a secret that is long enough for all"
GOOD = {
    "empty": {},
    "for editors": {"$schema": "config.schema.json"},
    "listeners": {"listen": {"stomp": None, "http": "127.0.0.1:8080", "metrics": "[::1]:9464", "stompTLS": 0}},
    "origins": {"listen": {"origins": ["https://app.example", "capacitor://localhost", "http://[::1]:8080", "null", "file://"]}},
    "all origins": {"listen": {"origins": ["*"]}},
    "back end": {"webhooks": {"url": "https://a.example/x", "secret": SECRET, "events": ["call.ended"]}, "authorize": {"url": "http://a"}},
    "turn": {"turn": {"urls": ["turn:t.example:3478?transport=udp", "stuns:s.example"], "secret": SECRET}},
    "key set": {"auth": {"jwksURL": "https://id.example/keys", "issuer": "i", "audience": "a", "userClaim": "oid"}},
    "others": {
        "destinations": ["/topic/chat."], "roles": {"interpreter": {"neverStarts": True}}, "webPush": {"contact": "mailto:a@b.example"},
        "telemetry": {"otlp": "http://127.0.0.1:4318"}, "log": "error", "logFormat": "json", "limits": {"participants": 5}, "history": {"days": 1}, "page": {"videoFirst": True, "guestsWait": True}, "links": {"days": 7, "ofUser": 3},
    },
}
BAD = {
    "mistyped": {"lisen": 1}, "mistyped within": {"media": {"publishing": {"audioPacket": 100}}}, "no port": {"listen": {"http": 70000}},
    "text for a number": {"media": {"port": "30000"}}, "range": {"drain": 4000}, "half of tls": {"tls": {"certificate": "c"}},
    "level": {"log": "warn"}, "address without brackets": {"listen": {"metrics": "::1:9464"}}, "origin": {"listen": {"origins": ["app.example"]}},
    "origin with a path": {"listen": {"origins": ["https://app.example/"]}}, "limit": {"limits": {"body": 0}},
    "key set without issuer": {"auth": {"jwksFile": "/x"}}, "two kinds of keys": {"auth": {"secretFile": "/x", "jwksFile": "/y", "issuer": "i", "audience": "a"}},
    "webhooks without a secret": {"webhooks": {"url": "https://a.example"}}, "event": {"webhooks": {"url": "https://a.example", "secret": SECRET, "events": ["x"]}},
    "two secrets": {"turn": {"urls": ["turn:t"], "secret": SECRET, "secretFile": "/x"}}, "no relay": {"turn": {"urls": [], "secret": SECRET}},
    "relay": {"turn": {"urls": ["https://t.example"], "secret": SECRET}}, "url": {"authorize": {"url": "ftp://a"}, "webhooks": {"url": "https://a", "secret": SECRET}},
    "contact": {"webPush": {"contact": "nobody"}}, "role": {"roles": {"r": {"neverStart": True}}}, "destination": {"destinations": ["/elsewhere"]},
    "list": {"listen": {"proxies": "127.0.0.1"}}, "null": {"media": {"voices": 0}},
}


def server_says(tmp_path, config):
    """The server's errors about the values, or None. `status` reads the same file and opens no port."""
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**config, "state": str(tmp_path / "state")}))
    run = subprocess.run([BINARY, "status", "--config", str(file)], capture_output=True, text=True, timeout=30 * PATIENCE)
    return None if "no server runs" in run.stderr else run.stderr


@pytest.mark.parametrize("config", GOOD.values(), ids=GOOD)
def test_the_schema_accepts_what_the_server_accepts(schema, tmp_path, config):
    jsonschema.validate(config, schema)
    # `authorize` without a secret uses that of the webhooks.
    assert server_says(tmp_path, config) is None


@pytest.mark.parametrize("config", BAD.values(), ids=BAD)
def test_the_schema_refuses_what_the_server_refuses(schema, tmp_path, config):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(config, schema)
    assert server_says(tmp_path, config)


def members(schema, path=""):
    for name, value in schema.get("properties", {}).items():
        yield path + name, value
        yield from members(value, f"{path}{name}.")


def test_each_member_says_what_it_is(schema):
    named = dict(members(schema))
    assert len(named) > 80
    for path, value in named.items():
        assert value["description"].endswith("."), path


def test_the_document_names_each_member(schema):
    text = (ROOT / "docs/deploy.md").read_text()
    table = text[text.index("## Configuration") : text.index("## Ports and firewall")]
    words = set(re.findall(r"[`.]([A-Za-z$]+)", table))
    assert {path.rsplit(".", 1)[-1] for path, _ in members(schema)} - words == set()


def test_the_chart_has_the_schema(schema):
    values = json.loads((ROOT / "deploy/helm/conclave/values.schema.json").read_text())
    del schema["$schema"]
    assert values["definitions"]["configuration"] == schema, "run deploy/schema"
    assert {"$ref": "#/definitions/configuration"} in values["properties"]["config"]["allOf"]

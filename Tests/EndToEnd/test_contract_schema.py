"""docs/contract.json, the JSON Schema of all bodies: the contract's examples match it, and have no member that it lacks."""

import json
import pathlib

import jsonschema
import pytest

from test_bodies import GOLDEN, path_of

CONTRACT = json.loads((pathlib.Path(__file__).parents[2] / "docs/contract.json").read_text())


def closed(schema):
    """The same schema for a reader that refuses unknown members."""
    if isinstance(schema, list):
        return [closed(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(value) for name, value in schema.items()}
    return {"additionalProperties": False, **inner} if schema.get("type") == "object" else inner


DEFINITIONS = closed(CONTRACT["$defs"])


def faults(schema, body):
    validator = jsonschema.Draft202012Validator({**closed(schema), "$defs": DEFINITIONS})
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(body)]


def examples():
    """(name, schema, body) of each example."""
    requests, replies, events = (json.loads((GOLDEN / f"{name}.json").read_text()) for name in ("requests", "replies", "events"))
    yield from ((name, CONTRACT["requests"][path_of(name)]["body"], body) for name, body in requests.items())
    yield from ((name, CONTRACT["replies"][name], body) for name, body in replies.items())
    yield from ((name, CONTRACT["events"][name]["body"], body) for name, body in events.items())


def test_it_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(CONTRACT)
    for kind in "requests", "events":
        for entry in CONTRACT[kind].values():
            jsonschema.Draft202012Validator.check_schema(entry["body"])


def test_every_example_fits_its_schema():
    values = list(examples())
    assert len(values) > 80
    assert {name: found for name, schema, body in values if (found := faults(schema, body))} == {}


def test_every_declaration_has_an_example():
    requests, replies, events = (json.loads((GOLDEN / f"{name}.json").read_text()) for name in ("requests", "replies", "events"))
    assert set(CONTRACT["requests"]) == {path_of(name) for name in requests}
    assert set(CONTRACT["replies"]) == set(replies) and set(CONTRACT["events"]) == set(events)


def test_each_request_names_its_replies():
    named = [set(request["replies"]) for request in CONTRACT["requests"].values()]
    assert all(named) and set().union(*named) == set(CONTRACT["replies"]) - {"error"}


def envelope(**changes):
    body = json.loads((GOLDEN / "events.json").read_text())["keys.envelope"]
    kept = {name: body[name] for name in ("epoch", "to", "key", "alg", "ciphertext")}
    return {name: value for name, value in {**kept, **changes}.items() if value is not None}


def test_an_envelope_has_its_ciphertext_by_either_name():
    schema = {"$ref": "#/$defs/Envelope"}
    assert faults(schema, envelope()) == faults(schema, envelope(ciphertext=None, encryptedAESKey="AA==")) == []
    assert faults(schema, envelope(ciphertext=None))


def test_a_push_subscription_may_be_null():
    assert faults(CONTRACT["requests"]["/app/devices/push"]["body"], {"subscription": None}) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.pop("mode"), lambda body: body.update(epoch="2"), lambda body: body.update(epoch=-1), lambda body: body.update(mode="other"),
        lambda body: body.update(color="red"), lambda body: body["list"][0].pop("user"), lambda body: body["list"][0].update(user="a b"),
        lambda body: body.update(previous="AA"),
    ],
    ids=["absent", "type", "range", "value", "unknown", "inner", "id", "base64"],
)
def test_a_body_of_another_shape_is_found(change):
    body = json.loads((GOLDEN / "events.json").read_text())["keys.rotate"]
    change(body)
    assert faults(CONTRACT["events"]["keys.rotate"]["body"], body)

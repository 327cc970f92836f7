"""docs/clients.md declares the type of every body: the contract's examples match it, and it has no member that they lack."""

import json
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
GOLDEN = ROOT / "Tests/ContractTests/Golden"
# The replies by their names in the examples; all others are empty.
REPLIES = {
    "joined": "Requests['/app/calls/{id}/accept'][1]",
    "rejoined": "Rejoined",
    "started": "Requests['/app/calls/start'][1]",
    "results": "Requests['/app/calls/{id}/invite'][1]",
    "registered": "Requests['/app/devices/register'][1]",
    "devices": "Requests['/app/devices/list'][1]",
    "state": "Requests['/app/calls/{id}/state'][1]",
    "calls": "Requests['/app/calls/list'][1]",
    "link": "Requests['/app/calls/{id}/link'][1]",
    "knocking": "Requests['/app/calls/{id}/knock'][1]",
    "media": "Requests['/app/calls/{id}/media'][1]",
    "keys": "Requests['/app/calls/{id}/keys'][1]",
    "keyList": "Requests['/app/calls/{id}/keys/list'][1]",
    "confirmations": "Requests['/app/calls/{id}/keys/confirmations'][1]",
    "presence": "Requests['/app/presence/watch'][1]",
    "history": "Requests['/app/history/list'][1]",
    "totals": "Requests['/app/history/totals'][1]",
    "lastingLink": "Requests['/app/links/make'][1]",
    "lastingLinks": "Requests['/app/links/list'][1]",
    "openedLink": "Requests['/app/links/open'][1]",
    "startedRecording": "Requests['/app/recordings/start'][1]",
    "recordings": "Requests['/app/recordings/list'][1]",
    "recording": "Requests['/app/recordings/get'][1]",
    "consented": "Requests['/app/calls/{id}/record/consent'][1]",
    "nothing": "Requests['/app/calls/{id}/leave'][1]",
    "error": "Failure",
}


def shapes():
    return re.search(r"```ts\n(.*?)```", (ROOT / "docs/clients.md").read_text(), re.S)[1]


def path_of(destination):
    """The form of `/app/calls/6f0c…/tracks/1.2` in the document."""
    destination = re.sub(r"^/app/calls/[0-9a-f-]{36}", "/app/calls/{id}", destination)
    return re.sub(r"/tracks/.*", "/tracks/{track}", destination)


def examples():
    """(type, value) of each example."""
    requests, replies, events = (json.loads((GOLDEN / f"{name}.json").read_text()) for name in ("requests", "replies", "events"))
    yield from ((f"Requests['{path_of(destination)}'][0]", body) for destination, body in requests.items())
    yield from ((REPLIES[name], body) for name, body in replies.items())
    yield from ((f"Events['{name}']", body) for name, body in events.items())


def complaints(folder, declarations, values):
    """tsc's errors about values that do not match their types; it also refuses members that a type lacks."""
    lines = [f"const value{n}: {kind} = {json.dumps(value)};" for n, (kind, value) in enumerate(values)]
    file = folder / "bodies.ts"
    file.write_text("\n".join([declarations, *lines, "export {};"]))
    run = subprocess.run(["tsc", "--strict", "--noEmit", str(file)], capture_output=True, text=True, timeout=120)
    return [line for line in run.stdout.splitlines() if "error" in line]


def test_every_example_has_the_shape_of_the_document(tmp_path):
    values = list(examples())
    assert len(values) > 80
    assert complaints(tmp_path, shapes(), values) == []


def test_every_request_and_event_is_in_the_document():
    requests, events = (json.loads((GOLDEN / f"{name}.json").read_text()) for name in ("requests", "events"))
    body, tail = shapes().split("interface Requests {")[1].split("interface Events {")
    assert set(re.findall(r"^  '(/app/[^']*)'", body, re.M)) == {path_of(destination) for destination in requests}
    assert set(re.findall(r"^  '?([a-z][a-z.-]*)'?: (?!string)", tail, re.M)) == set(events)


def members(value):
    if isinstance(value, dict):
        return set(value) | {name for inner in value.values() for name in members(inner)}
    return {name for inner in value for name in members(inner)} if isinstance(value, list) else set()


def test_the_document_has_no_member_that_no_body_has():
    known = {name for _, value in examples() for name in members(value)}
    shown = set(re.findall(r"[{;&\n] *([A-Za-z]+)\??: ", re.sub(r"//.*", "", shapes())))
    assert shown <= known | {"speakers", "quality", "message", "presence", "report"}, "members that are in no example"


@pytest.mark.parametrize(
    "change",
    [lambda body: body.pop("mode"), lambda body: body.update(epoch="2"), lambda body: body.update(color="red"), lambda body: body["list"][0].pop("user")],
    ids=["absent", "type", "unknown", "inner"],
)
def test_a_body_of_another_shape_is_found(tmp_path, change):
    body = json.loads((GOLDEN / "events.json").read_text())["keys.rotate"]
    change(body)
    assert len(complaints(tmp_path, shapes(), [("Events['keys.rotate']", body)])) == 1


def test_each_status_of_a_connection_is_explained():
    library = (ROOT / "Sources/Web/conclave/conclave.js").read_text()
    statuses = re.findall(r"`([a-z]+)`", re.search(r"/\*\*(.*)\*/\n  status = ", library)[1])
    assert "ready" in statuses and len(statuses) >= 7
    text = (ROOT / "docs/clients.md").read_text()
    assert [status for status in statuses if f"'{status}'" not in text] == []

"""Firefox with the part of Selenium's interface that the tests use. Debian has no geckodriver, so this speaks WebDriver BiDi to the browser itself."""

import base64
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

import websocket
from selenium.common.exceptions import JavascriptException, StaleElementReferenceException, WebDriverException

from conftest import PATIENCE, wait_for

PREFERENCES = {
    "media.navigator.streams.fake": True,
    "media.navigator.permission.disabled": True,
    "media.autoplay.default": 0,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "app.normandy.enabled": False,
}


def to_local(value):
    """A LocalValue of WebDriver BiDi."""
    if isinstance(value, Element):
        return {"sharedId": value.id}
    if value is None:
        return {"type": "null"}
    if isinstance(value, list):
        return {"type": "array", "value": [to_local(one) for one in value]}
    if isinstance(value, dict):
        return {"type": "object", "value": [[key, to_local(one)] for key, one in value.items()]}
    return {"type": {bool: "boolean", str: "string"}.get(type(value), "number"), "value": value}


# The label or the content, without the parts hidden from screen readers: as much of Accessible Name and Description Computation 1.2 as the page needs.
NAME = """
  const content = (node) =>
    node.nodeType === Node.TEXT_NODE ? node.data : node.ariaHidden === 'true' ? '' : [...node.childNodes].map(content).join('');
  const [element] = arguments;
  return (element.ariaLabel ?? content(element.labels?.[0] ?? element)).trim();
"""


class Element:
    def __init__(self, driver, identifier):
        self.driver, self.id = driver, identifier

    def ask(self, expression):
        return self.driver.execute_script(f"return arguments[0].{expression}", self)

    @property
    def text(self):
        return self.ask("innerText")

    @property
    def accessible_name(self):
        return self.driver.execute_script(NAME, self)

    def click(self):
        self.ask("scrollIntoView({ block: 'nearest', behavior: 'instant' })")
        origin = {"type": "element", "element": {"sharedId": self.id}}
        actions = [{"type": "pointerMove", "x": 0, "y": 0, "origin": origin}]
        actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.driver.perform({"type": "pointer", "id": "mouse", "actions": actions})

    def clear(self):
        self.ask("select()")
        self.driver.type("\ue017")  # Delete (WebDriver, "Keyboard actions")

    def send_keys(self, text):
        self.ask("focus()")
        self.driver.type(text)


class Firefox:
    """One browser with one tab, on a virtual display so that the screen can be shared."""

    def __init__(self):
        self.profile = pathlib.Path(tempfile.mkdtemp(prefix="firefox"))
        lines = [f'user_pref("{name}", {json.dumps(value)});' for name, value in PREFERENCES.items()]
        (self.profile / "user.js").write_text("\n".join(lines))
        command = ["xvfb-run", "--auto-servernum", "--server-args=-screen 0 1280x800x24", "firefox-esr", "--no-remote"]
        command += ["--profile", str(self.profile), "--remote-debugging-port", "0", "--width", "1280", "--height", "800"]
        self.output = self.profile / "output"
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env={"HOME": str(self.profile), "PATH": "/usr/bin:/bin"}, start_new_session=True)
        listens = lambda: re.search(r"WebDriver BiDi listening on (ws://\S+)", self.output.read_text(errors="replace"))
        address = wait_for(listens, 30, "Firefox takes commands").group(1)
        self.socket = websocket.create_connection(f"{address}/session", suppress_origin=True, timeout=10 * PATIENCE)
        self.commands, self.entries = 0, []
        self.command("session.new", capabilities={})
        self.command("session.subscribe", events=["log.entryAdded"])
        self.context = self.command("browsingContext.getTree")["contexts"][0]["context"]

    def command(self, method, **parameters):
        self.commands += 1
        self.socket.send(json.dumps({"id": self.commands, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message["type"] == "event":
                self.entries.append({"message": message["params"].get("text") or ""})
            elif message["id"] == self.commands:
                break
        if message["type"] == "success":
            return message["result"]
        stale = message["error"] in ("no such node", "stale element reference")
        raise (StaleElementReferenceException if stale else WebDriverException)(f"{method}: {message['error']}: {message['message']}")

    def perform(self, source):
        self.command("input.performActions", context=self.context, actions=[source])

    def type(self, text):
        keys = [{"type": kind, "value": character} for character in text for kind in ("keyDown", "keyUp")]
        self.perform({"type": "key", "id": "keyboard", "actions": keys})

    def value(self, remote):
        """The Python value of a RemoteValue of WebDriver BiDi."""
        match remote["type"]:
            case "array":
                return [self.value(one) for one in remote["value"]]
            case "object":
                return {key: self.value(one) for key, one in remote["value"]}
            case "node":
                return Element(self, remote["sharedId"])
            case _:
                return remote.get("value")

    # The part of Selenium's interface

    def preload(self, script):
        self.command("script.addPreloadScript", functionDeclaration=f"() => {{ {script} }}")

    def get(self, url):
        self.command("browsingContext.navigate", context=self.context, url=url, wait="complete")

    def refresh(self):
        self.command("browsingContext.reload", context=self.context, wait="complete")

    def set_script_timeout(self, seconds):
        self.socket.settimeout(seconds)

    def execute_script(self, script, *arguments):
        return self.call(f"function () {{ {script} }}", arguments)

    def execute_async_script(self, script, *arguments):
        inner = f"function () {{ {script} }}"
        return self.call(f"function () {{ return new Promise((resolve) => ({inner})(...arguments, resolve)) }}", arguments)

    def call(self, function, arguments):
        local = [to_local(one) for one in arguments]
        # Scripts run with user activation, as in Chromium's driver.
        options = {"awaitPromise": True, "userActivation": True, "target": {"context": self.context}}
        answer = self.command("script.callFunction", functionDeclaration=function, arguments=local, **options)
        if answer["type"] == "exception":
            raise JavascriptException(answer["exceptionDetails"]["text"])
        return self.value(answer["result"])

    def find_element(self, by, name):
        assert by == "id"
        return self.execute_script("return document.getElementById(arguments[0])", name)

    def get_log(self, _):
        self.command("session.status")  # earlier entries come before its reply
        taken, self.entries = self.entries, []
        return taken

    def save_screenshot(self, path):
        data = self.command("browsingContext.captureScreenshot", context=self.context)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def quit(self):
        try:
            self.command("browser.close")
        finally:
            self.socket.close()
            # xvfb-run closes its display when the browser has exited.
            self.process.wait(10 * PATIENCE)
            shutil.rmtree(self.profile, ignore_errors=True)

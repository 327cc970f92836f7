"""Clients of Janus's API: over a WebSocket, and by requests and long polls of HTTP. They know the API and nothing about the server behind it."""

import json
import queue
import threading
import urllib.error
import urllib.request

import websocket

from waiting import PATIENCE

PLUGIN = "janus.plugin.videoroom"


class Client:
    """One session. `kept` are the messages that no `wait` has taken, in their order."""

    def __init__(self, **secrets):
        self.secrets, self.arrived, self.kept, self.count = secrets, queue.Queue(), [], 0
        self.session = None
        self.session = self.ask(janus="create")["data"]["id"]

    def transaction(self, request):
        self.count += 1
        request.update(self.secrets, transaction=f"t{self.count}")
        if self.session is not None:
            request["session_id"] = self.session
        return request["transaction"]

    def wait(self, wanted, seconds=15):
        """Takes the first message for which `wanted` holds."""
        for message in self.kept:
            if wanted(message):
                self.kept.remove(message)
                return message
        while True:
            message = self.arrived.get(timeout=seconds * PATIENCE)
            if wanted(message):
                return message
            self.kept.append(message)

    def ask(self, **request):
        """A request of the core, and its reply."""
        name = self.transaction(request)
        self.send(request)
        return self.wait(lambda message: message.get("transaction") == name)

    def attach(self):
        return Handle(self, self.ask(janus="attach", plugin=PLUGIN)["data"]["id"])


class WebSocketClient(Client):
    def __init__(self, url, **secrets):
        self.socket = websocket.create_connection(url, subprotocols=["janus-protocol"], timeout=60 * PATIENCE)
        super().__init__(**secrets)

    def send(self, request):
        self.socket.send(json.dumps(request))

    def wait(self, wanted, seconds=15):
        for message in self.kept:
            if wanted(message):
                self.kept.remove(message)
                return message
        self.socket.settimeout(seconds * PATIENCE)
        while True:
            message = json.loads(self.socket.recv())
            if wanted(message):
                return message
            self.kept.append(message)

    def close(self):
        self.socket.close()


class PollingClient(Client):
    """Replies come with the requests, events by a thread that polls."""

    def __init__(self, url, maximum=None, **secrets):
        self.url, self.maximum, self.polls = url, maximum, True
        super().__init__(**secrets)
        threading.Thread(target=self.poll, daemon=True).start()

    def send(self, request):
        path = [str(request.pop(name)) for name in ("session_id", "handle_id") if name in request]
        self.arrived.put(self.post("/".join([self.url, *path]), json.dumps(request).encode()))

    @staticmethod
    def post(url, body, seconds=45):
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=seconds * PATIENCE) as reply:
            return json.loads(reply.read())

    def poll(self):
        query = "&".join([f"{name}={value}" for name, value in self.secrets.items()] + ([f"maxev={self.maximum}"] if self.maximum else []))
        while self.polls:
            try:
                events = self.post(f"{self.url}/{self.session}?{query}", None)
            except (OSError, urllib.error.URLError):
                return
            for event in events if isinstance(events, list) else [events]:
                if event["janus"] == "error":
                    return
                if event["janus"] != "keepalive":
                    self.arrived.put(event)

    def close(self):
        self.polls = False


class Handle:
    def __init__(self, client, number):
        self.client, self.number = client, number

    def core(self, name, **members):
        return self.client.ask(janus=name, handle_id=self.number, **members)

    def message(self, body, jsep=None):
        """The answer of the videoroom: its reply, or the event after the `ack`."""
        request = {"janus": "message", "handle_id": self.number, "body": body}
        if jsep:
            request["jsep"] = jsep
        name = self.client.transaction(request)
        self.client.send(request)
        answer = self.client.wait(lambda message: message.get("transaction") == name)
        if answer["janus"] == "ack":
            answer = self.client.wait(lambda message: message.get("transaction") == name)
        return answer

    def data(self, body, jsep=None):
        return self.message(body, jsep)["plugindata"]["data"]

    def event(self, wanted, seconds=15):
        """Takes an event of this handle: its data, or the message of the core."""

        def matches(message):
            return message.get("sender") == self.number and "transaction" not in message and wanted(message.get("plugindata", {}).get("data", message))

        message = self.client.wait(matches, seconds)
        return message.get("plugindata", {}).get("data", message)

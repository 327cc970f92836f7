"""Web Push: a ring reaches a browser that is not connected, through the tests' own push service."""

import base64
import json
import time
import urllib.request

import pytest
import websocket

from client import RequestFailed
from conftest import PATIENCE, Server, wait_for
from push_service import PushService, check_signature


@pytest.fixture
def service(tmp_path):
    running = PushService(tmp_path)
    yield running
    running.stop()


@pytest.fixture
def server(tmp_path, service):
    running = Server(tmp_path, webPush=service.configuration)
    yield running
    running.stop()


@pytest.fixture
def away(connect):
    """A user with a subscription, who is not connected."""

    def make(user, subscription, device="laptop"):
        client = connect(user, device)
        client.request("/app/devices/push", {"subscription": subscription.body})
        client.close()

    return make


def test_a_ring_and_its_end_reach_a_browser_that_is_away_and_nobody_else_can_read_them(server, service, connect, away):
    key = base64.b64decode(connect("bob", register=False).register()["pushKey"])
    bob = service.subscription("bob")
    away("bob", bob)
    alice = connect("alice")
    call = alice.start("bob", media="video")["call"]["id"]
    (headers, body) = wait_for(lambda: service.of("bob"), 10, "a push")[0]
    assert bob.decrypt(body) == {"type": "ring", "call": call, "from": "alice", "media": "video"}
    assert len(body) == 86 + 1_024 + 17 and call.encode() not in body
    assert headers["content-encoding"] == "aes128gcm" and headers["urgency"] == "high"
    assert 0 < int(headers["ttl"]) <= 60 and len(headers["topic"]) == 32
    check_signature(headers["authorization"], key, service.origin, time.time())
    alice.request(f"/app/calls/{call}/cancel")
    (ended, body) = wait_for(lambda: service.of("bob")[1:], 10, "the end of the ring")[0]
    assert bob.decrypt(body) == {"type": "ring-over", "call": call} and ended["topic"] == headers["topic"]
    assert server.metric("conclave_push_sent_total") == 2
    log = (server.folder / "server.log").read_text()
    assert service.origin not in log and "127.0.0.1" not in log


def test_a_message_and_an_alert_reach_a_browser_that_is_away(tmp_path, service):
    from test_contract_recordings import Device, Recording

    server = Server(tmp_path, webPush=service.configuration, recordings={"reserveMiB": 0})
    try:
        alice, bob = Device(server, "alice"), Device(server, "bob")
        call = alice.request("/app/calls/start", {"callees": ["bob"], "media": "audio", **alice.starting()})["call"]["id"]
        alice.request(f"/app/calls/{call}/end")
        subscription = service.subscription("bob")
        bob.request("/app/devices/push", {"subscription": subscription.body})
        bob.close()
        recordings = Recording(alice, "alice", "bob"), Recording(alice, "alice", "bob", kind="own")
        recordings[0].start(grants=[recordings[0].grant(bob)])
        recordings[1].start(grants=[recordings[1].grant(bob)], alert=True)
        pushes = wait_for(lambda: service.of("bob") if len(service.of("bob")) == 2 else None, 10, "two pushes")
        read = sorted(((subscription.decrypt(body), headers) for headers, body in pushes), key=lambda push: push[0]["type"])
        told = {"from": "alice"}
        assert [content for content, _ in read] == [
            {"type": "alert", "recording": str(recordings[1].id), **told}, {"type": "message", "recording": str(recordings[0].id), **told},
        ]
        (_, alert), (_, message) = read
        assert alert["urgency"] == "high" and 3_500 < int(alert["ttl"]) <= 3_600
        assert message["urgency"] == "normal" and 86_000 < int(message["ttl"]) <= 86_400
        assert alert["topic"] != message["topic"]
    finally:
        server.stop()


def test_a_subscription_and_the_key_outlive_a_restart(server, service, connect, away):
    before = connect("carol", register=False).register()["pushKey"]
    bob = service.subscription("bob")
    away("bob", bob)
    server.die()
    server.start()
    alice = connect("alice", "phone", register=False)
    assert alice.register()["pushKey"] == before
    assert (server.state / "push-key").stat().st_mode & 0o777 == 0o600
    alice.start("bob")
    (_, body) = wait_for(lambda: service.of("bob"), 10, "a push")[0]
    assert bob.decrypt(body)["type"] == "ring"


def test_a_failure_that_may_pass_is_tried_again_and_a_void_subscription_is_removed(server, service, connect, away):
    away("bob", service.subscription("bob"))
    alice = connect("alice")
    service.statuses = [503, 410]
    call = alice.start("bob")["call"]["id"]
    wait_for(lambda: server.metric_of("conclave_push_failed_total", 'reason="gone"') == 1, 15, "the second try")
    assert server.metric_of("conclave_push_failed_total", 'reason="busy"') == 1 and len(service.of("bob")) == 2
    alice.request(f"/app/calls/{call}/leave")
    away("carol", service.subscription("carol"))
    alice.start("bob", "carol")
    wait_for(lambda: service.of("carol"), 10, "a push to somebody else who is rung")
    assert len(service.of("bob")) == 2, "nothing is sent to a subscription that is gone"


def test_a_subscription_is_replaced_ended_and_goes_with_its_device(server, service, connect, away):
    alice, bob = connect("alice"), connect("bob", "phone")
    away("bob", service.subscription("old"))
    away("bob", service.subscription("new"))
    bob.request("/app/devices/push", {"subscription": service.subscription("phone").body})
    bob.request("/app/devices/push", {"subscription": None})
    alice.request(f"/app/calls/{alice.start('bob')['call']['id']}/leave")
    wait_for(lambda: len(service.of("new")) == 2, 10, "a ring and its end")
    bob.request("/app/devices/remove", {"device": "laptop"})
    bob.close()
    away("carol", service.subscription("carol"))
    alice.start("bob", "carol")
    wait_for(lambda: service.of("carol"), 10, "a push to somebody else who is rung")
    assert [path for path, _, _ in service.pushes] == ["/new", "/new", "/carol"]


@pytest.mark.parametrize(
    "change",
    [
        {"endpoint": "http://push.example/x"},
        {"endpoint": "https://user@push.example/x"},
        {"endpoint": "https://0x7f.1/x"},
        {"endpoint": "https://push.example/" + "x" * 2_048},
        {"endpoint": 7},
        {"p256dh": base64.b64encode(bytes(65)).decode()},
        {"p256dh": base64.b64encode(b"\4" + bytes(63)).decode()},
        {"auth": base64.b64encode(bytes(15)).decode()},
        {"auth": "no base64"},
    ],
    ids=lambda change: json.dumps(change)[:40],
)
def test_malformed_subscriptions_are_refused(service, connect, change):
    with pytest.raises(RequestFailed) as refused:
        connect("bob").request("/app/devices/push", {"subscription": {**service.subscription("bob").body, **change}})
    assert refused.value.code == "request.invalid"


def test_a_device_without_keys_has_no_subscription(service, connect):
    with pytest.raises(RequestFailed) as refused:
        connect("bob", register=False).request("/app/devices/push", {"subscription": service.subscription("bob").body})
    assert refused.value.code == "device.not-found"


@pytest.mark.parametrize("host", ["127.0.0.2", "[::1]", "10.0.0.1", "169.254.169.254"])
def test_an_endpoint_leads_nowhere_into_the_servers_own_network(service, connect, server, away, host):
    """`networks` names only 127.0.0.1."""
    subscription = service.subscription("bob")
    subscription.endpoint = f"https://{host}:{service.server.server_port}/bob"
    away("bob", subscription)
    connect("alice").start("bob")
    wait_for(lambda: server.metric_of("conclave_push_failed_total", 'reason="address"') == 1, 15, "a refusal")
    assert service.pushes == []


# Replaces Chromium's push service, which a test cannot reach.
SUBSCRIBE = """
(() => {
  const given = %s;
  const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const made = () => ({
    endpoint: given.endpoint,
    options: { applicationServerKey: bytes(localStorage.testPushKey).buffer },
    getKey: (name) => bytes(given[name]).buffer,
    unsubscribe: async () => { delete localStorage.testPushKey; return true; },
  });
  PushManager.prototype.getSubscription = async () => (localStorage.testPushKey ? made() : null);
  PushManager.prototype.subscribe = async ({ userVisibleOnly, applicationServerKey }) => {
    if (!userVisibleOnly) throw new TypeError('Chromium wants pushes to be seen');
    localStorage.testPushKey = btoa(String.fromCharCode(...applicationServerKey));
    return made();
  };
})();
"""
SHOWN = """
const done = arguments[0];
navigator.serviceWorker.getRegistration('/').then((registration) => registration.getNotifications())
  .then((all) => done(all.map(({ title, body, actions, data }) => ({ title, body, actions: actions.map(({ action }) => action), call: data.call }))));
"""


# The service worker's answer to a page that asks.
PRESS = "navigator.serviceWorker.dispatchEvent(new MessageEvent('message', { data: { type: arguments[0], call: arguments[1] } }))"


# Settles when the worker has handled the push. Its own listener was added first, and `turn` ends with the work that it began.
HANDLED = "self.handled = new Promise((done) => addEventListener('push', () => done(turn), { once: true })); 0"


class Tools:
    """The developer tools of a page or a worker. The driver's own connection does not forward events."""

    def __init__(self, tab, kind, address):
        browser = tab.driver.capabilities["goog:chromeOptions"]["debuggerAddress"]

        def found():
            targets = json.load(urllib.request.urlopen(f"http://{browser}/json/list", timeout=10))
            return [target for target in targets if target["type"] == kind and target["url"].startswith(address)]

        (target,) = wait_for(found, 10, f"the browser has a {kind} of {address}")
        self.socket = websocket.create_connection(target["webSocketDebuggerUrl"], timeout=10 * PATIENCE, suppress_origin=True)
        self.sent = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, method, **parameters):
        self.sent += 1
        self.socket.send(json.dumps({"id": self.sent, "method": method, "params": parameters}))

    def reply(self):
        """The reply to the last command."""
        while (message := json.loads(self.socket.recv())).get("id") != self.sent:
            pass
        assert "error" not in message, message
        return message["result"]

    def active_worker(self, scope):
        """The number of the scope's registration, once its worker is active. A browser also numbers the registrations of its extensions."""
        self.send("ServiceWorker.enable")
        registered, active = set(), set()
        while not registered & active:
            told = json.loads(self.socket.recv()).get("params", {})
            registered |= {one["registrationId"] for one in told.get("registrations", []) if one["scopeURL"] == scope and not one["isDeleted"]}
            active |= {one["registrationId"] for one in told.get("versions", []) if one["status"] == "activated"}
        return (registered & active).pop()


def deliver(tab, url, notice):
    """
    Delivers a push as the browser does after decryption. Returns when the worker has handled it, since Chromium loses a notification that a page queries while
    it is still being shown.
    """
    scope = f"{url.rstrip('/')}/"
    with Tools(tab, "page", tab.driver.current_url) as page:
        number = page.active_worker(scope)
        page.send("ServiceWorker.startWorker", scopeURL=scope)
        page.reply()
        with Tools(tab, "service_worker", scope) as worker:
            worker.send("Runtime.evaluate", expression=HANDLED)
            worker.reply()
            page.send("ServiceWorker.deliverPushMessage", origin=scope.rstrip("/"), registrationId=number, data=json.dumps(notice))
            page.reply()
            worker.send("Runtime.evaluate", expression="handled", awaitPromise=True)
            assert "exceptionDetails" not in worker.reply()


def grant(tab, url):
    """Sets the permissions that the person grants. They last as long as the driver's current window."""
    allowed = ["notifications", "audioCapture", "videoCapture"]
    tab.driver.execute_cdp_cmd("Browser.grantPermissions", {"origin": url.rstrip("/"), "permissions": allowed})


def close_page(tab, url):
    """Replaces the page by another document of the origin, from which a test can query what the system shows."""
    tab.driver.get(f"{url}/healthz")


def open_window(tab, script, address):
    """A new window, which knows nothing about the closed page."""
    tab.driver.switch_to.new_window("tab")
    tab.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    tab.driver.get(address)


def open_from_notification(tab, script, url, call, action):
    """The service worker opens this address, and tells the page what was pressed when it asks. A test cannot press the system's buttons."""
    open_window(tab, script, f"{url}/#ring={call}")
    tab.sees("#ring[open]", 20)
    tab.driver.execute_script(PRESS, action, call)


def test_a_closed_page_rings_and_is_answered_or_declined_and_signing_out_ends_that(server, service, person, url):
    subscription = service.subscription("bob")
    script = SUBSCRIBE % json.dumps(subscription.body)
    alice, bob = person("Alice"), person("Bob", script)
    grant(bob, url)
    bob.press("Notify me of calls")
    bob.hears("Calls ring in this browser even when this page is closed.")
    close_page(bob, url)

    def rung(count):
        _, body = wait_for(lambda: service.of("bob")[count:], 10, "a push")[0]
        notice = subscription.decrypt(body)
        deliver(bob, url, notice)
        return notice

    def shown():
        return bob.driver.execute_async_script(SHOWN)

    alice.call("Bob")
    notice = rung(0)
    assert notice["name"] == "Alice" and notice["from"] == "alice"
    (ring,) = wait_for(shown, 10, "a notification")
    assert ring == {"title": "Alice is calling", "body": "Video call", "actions": ["answer", "decline"], "call": notice["call"]}

    first = bob.driver.current_window_handle
    # A caller chooses the id of the call, and may lure somebody to an address with it.
    for asked in ("answer", "decline"):
        open_window(bob, script, f"{url}/#{asked}={notice['call']}")
        bob.sees("#welcome")
        bob.driver.close()
        bob.driver.switch_to.window(first)
    open_from_notification(bob, script, url, notice["call"], "answer")
    bob.sees("#call", 20)
    alice.sees("#call")
    assert "#" not in bob.driver.current_url
    wait_for(lambda: not shown(), 10, "the notification is closed when the call is answered")
    alice.leave()
    bob.sees("#lobby")
    bob.driver.close()
    bob.driver.switch_to.window(first)

    before = len(service.of("bob"))
    alice.sees("#lobby")
    alice.call("Bob")
    notice = rung(before)
    wait_for(shown, 10, "a notification of the second ring")
    alice.leave()
    assert rung(before + 1) == {"type": "ring-over", "call": notice["call"]}
    (quiet,) = wait_for(lambda: [one for one in shown() if not one["actions"]], 10, "a silent notification")
    assert quiet["title"] == "Alice is calling" and quiet["body"] == "This call no longer rings."

    before = len(service.of("bob"))
    alice.sees("#lobby")
    alice.call("Bob")
    notice = rung(before)
    open_from_notification(bob, script, url, notice["call"], "decline")
    bob.sees("#lobby", 20)
    alice.hears("declined", 20)

    bob.press("Sign out")
    bob.driver.find_element("id", "sign-out-keep").click()
    bob.sees("#welcome")
    assert bob.driver.execute_script("return [localStorage.testPushKey ?? null, localStorage['push-sign-in'] ?? null]") == [None, None]

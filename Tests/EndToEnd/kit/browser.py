"""A headless Chromium in which one person uses the web client, driven by what a person sees: names of buttons and fields."""

import atexit
import json
import os
import pathlib
import shutil

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from conftest import PATIENCE, wait_for

# The frame rate of the cameras. All browsers of a test encode and decode on one machine.
CAMERA_RATE = os.environ.get("CONCLAVE_CAMERA_RATE", "10")
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    f"--use-fake-device-for-media-stream=fps={CAMERA_RATE},device-count=2",
    "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
    "--window-size=1280,800",
]

# A quarter of the pixels that the page asks for: encoding and decoding takes most of the time of a test with several people.
SMALL_CAMERA = """
(() => {
  const open = MediaDevices.prototype.getUserMedia;
  MediaDevices.prototype.getUserMedia = function (wish) {
    const video = wish.video?.width ? { ...wish.video, width: { ideal: 480 }, height: { ideal: 270 } } : wish.video;
    return open.call(this, video ? { ...wish, video } : wish);
  };
})();
"""


def drawn_face(name):
    """A script that gives this person's browser a camera with a drawn face, for pictures of the page."""
    return f"const conclaveFace = {json.dumps(name)};\n{script_of('face')}\n{script_of('camera')}"


def script_of(name):
    return (pathlib.Path(__file__).parent / f"{name}.js").read_text()


def gather(tab, names):
    """Many people in one page, in which nobody is signed in: they accept every call. They have faces where the page is photographed."""
    faces = script_of("face") if "CONCLAVE_SCREENSHOTS" in os.environ else ""
    assert tab.driver.execute_async_script(f"{faces}\n{script_of('crowd')}", names) == ""


# Keeps the page's PeerConnections, so that the test can read their statistics by the track that a tile shows.
PROBE = """
(() => {
  const peers = [];
  window.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(...parameters) {
      super(...parameters);
      peers.push(this);
    }
  };
  window.conclavePeers = peers;
  window.conclaveReceived = async () => {
    const received = { video: {}, audio: {}, frames: 0, samples: 0, packets: { audio: 0, video: 0 } };
    const reports = [];
    // A held call has its PeerConnection beside the one of the call that is talked in.
    for (const [index, peer] of peers.entries()) {
      if (peer.connectionState === 'closed') continue;
      for (const report of (await peer.getStats()).values()) {
        if (report.type === 'inbound-rtp') reports.push({ ...report, slot: `${index}/${report.mid}` });
      }
    }
    for (const { kind, slot, totalSamplesReceived, concealedSamples, framesDecoded, packetsReceived } of reports) {
      received.packets[kind] += packetsReceived;
      if (kind === 'audio') received.audio[slot] = totalSamplesReceived - concealedSamples;
      if (kind === 'audio') received.samples += totalSamplesReceived;
      if (kind === 'video') received.frames += framesDecoded;
    }
    for (const tile of document.querySelectorAll('.tile[data-track]:not(.own)')) {
      const track = tile.querySelector('video')?.srcObject?.getVideoTracks()[0];
      const report = reports.find(({ trackIdentifier }) => track && trackIdentifier === track.id);
      const { user, source } = tile.dataset;
      if (report) received.video[`${user}/${source}`] = [report.slot, report.framesDecoded];
    }
    return received;
  };
  // For a failure: each tile, and what came for each slot of video.
  window.conclaveTold = async () => {
    const told = [...document.querySelectorAll('.tile')].map(({ dataset }) => JSON.stringify(dataset));
    for (const [index, peer] of peers.entries()) {
      if (peer.connectionState === 'closed') continue;
      for (const { type, kind, mid, packetsReceived, framesReceived, framesDecoded, keyFramesDecoded, pliCount } of (await peer.getStats()).values()) {
        if (type !== 'inbound-rtp' || kind !== 'video' || !packetsReceived) continue;
        told.push(JSON.stringify({ slot: `${index}/${mid}`, packetsReceived, framesReceived, framesDecoded, keyFramesDecoded, pliCount }));
      }
    }
    return told.join(' ');
  };
  // A notice goes after six seconds, and a machine that is busy may look later.
  const said = [];
  new MutationObserver((changes) => {
    for (const node of changes.flatMap(({ addedNodes }) => [...addedNodes])) if (node.className === 'notice') said.push(node.textContent);
  }).observe(document, { childList: true, subtree: true });
  // True if they are in a notice that is shown, or was since the last one that was asked for; forgets it and those before it.
  window.conclaveSaid = (words) => {
    const heard = said.findIndex((text) => text.includes(words));
    said.splice(0, heard + 1);
    return heard >= 0 || document.getElementById('notices').innerText.includes(words);
  };
  // What is sent of the camera: each layer by its id, with the height and the count of its encoded frames, and its codec.
  window.conclaveSent = async () => {
    const sent = {};
    for (const peer of peers) {
      if (peer.connectionState === 'closed') continue;
      const stats = await peer.getStats();
      for (const { type, kind, rid, frameHeight, framesEncoded, codecId } of stats.values()) {
        if (type !== 'outbound-rtp' || kind !== 'video' || !rid) continue;
        sent[rid] = { height: frameHeight ?? 0, frames: framesEncoded ?? 0, codec: stats.get(codecId)?.mimeType };
      }
    }
    return sent;
  };
})();
"""

# Calls of this page ring for two minutes instead of half a minute: a test with several browsers may need longer on a busy machine.
LONG_RING = """
(() => {
  const write = JSON.stringify;
  JSON.stringify = (value, ...rest) => write(value?.callees ? { ...value, policy: { ...value.policy, ringSeconds: 120 } } : value, ...rest);
})();
"""

# Keeps only the TCP candidates of the answer, as in a network that blocks UDP.
TCP_ONLY = """
(() => {
  const set = RTCPeerConnection.prototype.setRemoteDescription;
  RTCPeerConnection.prototype.setRemoteDescription = function ({ type, sdp }) {
    return set.call(this, { type, sdp: sdp.replace(/^a=candidate:\\S+ 1 udp .*\\r\\n/gm, '') });
  };
})();
"""

# Replaces every key that the page passes to its worker by another one.
WRONG_KEY = """
(() => {
  let wrong;
  crypto.subtle.importKey('raw', new Uint8Array(32).fill(1), 'HKDF', false, ['deriveBits']).then((key) => (wrong = key));
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...rest) {
    return post.call(this, message.type === 'epoch' ? { ...message, secret: wrong } : message, ...rest);
  };
})();
"""


# Browsers that earlier tests have left for reuse: a browser takes a second to start, a tab a tenth of that.
IDLE = []
atexit.register(lambda: [driver.quit() for driver in IDLE])


class Chromium(webdriver.Chrome):
    def preload(self, script):
        """Runs a script in each page before the page's own."""
        self.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})


def started(profile, *flags):
    options = webdriver.ChromeOptions()
    if profile:
        options.add_argument(f"--user-data-dir={profile}")
    options.binary_location = os.environ.get("CHROMIUM", shutil.which("chromium") or "/usr/bin/chromium")
    for flag in (*FLAGS, *flags):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return Chromium(options=options, service=Service(os.environ.get("CHROMEDRIVER", shutil.which("chromedriver") or "/usr/bin/chromedriver")))


def make_as_new(driver, origin):
    """Resets a browser to its initial state: one tab, no emulation, nothing stored."""
    used = driver.window_handles
    driver.switch_to.new_window("tab")
    fresh = driver.current_window_handle
    for handle in used:
        driver.switch_to.window(handle)
        driver.close()
    driver.switch_to.window(fresh)
    driver.set_window_size(1280, 800)
    driver.execute_cdp_cmd("Browser.resetPermissions", {})
    driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
    driver.execute_cdp_cmd("Network.clearBrowserCache", {})
    driver.get_log("browser")


class Tab:
    """One browser with the web client open and somebody signed in."""

    def __init__(self, url, name, scripts=(), profile=None, view="#lobby", words=("Your name", "Sign in"), driver=None):
        """`driver` is a browser for this tab only; by default one that earlier tests have left is reused. `profile` is a folder that outlives the browser.
        `view` is the view after signing in. `words` are the labels of the sign-in in the page's language; without them nobody signs in."""
        self.url, self.is_shared = url, not (profile or driver)
        self.driver = driver or (IDLE.pop() if IDLE and self.is_shared else started(profile))
        self.driver.set_script_timeout(10 * PATIENCE)
        for script in (PROBE, *scripts):
            self.driver.preload(script)
        self.is_closed = False
        self.name = name
        self.user = name.lower()
        self.driver.get(url)
        if words:
            self.fill(words[0], name)
            self.press(words[1])
            self.sees(view)

    def close(self):
        self.is_closed = True
        if not self.is_shared:
            return self.driver.quit()
        try:
            make_as_new(self.driver, "/".join(self.url.split("/")[:3]))
            IDLE.append(self.driver)
        except WebDriverException:
            self.driver.quit()

    @property
    def log(self):
        return "\n".join(f"{self.name}: {entry['message']}" for entry in self.driver.get_log("browser"))

    # A person's actions

    def find(self, selector, name, seconds=10):
        # Likely elements first: each query about an element takes the driver a while.
        likely = """
          const shown = [...document.querySelectorAll(arguments[0])].filter((one) => one.checkVisibility({ visibilityProperty: true }));
          const fits = (one) => [one.ariaLabel, one.labels?.[0]?.innerText, one.innerText].some((text) => text?.trim() === arguments[1]);
          return shown.sort((a, b) => fits(b) - fits(a));
        """

        def visible():
            try:
                elements = self.driver.execute_script(likely, selector, name)
                return next((e for e in elements if name in (None, e.accessible_name)), None)
            except StaleElementReferenceException:
                return None

        return wait_for(visible, seconds, f"{self.name} finds “{name}”")

    def click(self, selector, name, seconds=10):
        """Clicks, and retries if the page redraws the element between finding and clicking it."""

        def clicked():
            try:
                self.find(selector, name, seconds).click()
            except StaleElementReferenceException:
                return False
            return True

        wait_for(clicked, seconds, f"{self.name} clicks “{name}”")

    def press(self, name, seconds=10):
        self.click("button:enabled", name, seconds)

    def fill(self, label, text):
        field = self.find("input", label)
        field.clear()
        field.send_keys(text)

    def call(self, *people):
        self.fill("People", ",".join(people))
        self.press("Video call")
        self.sees("#call")

    def answer(self, name="Accept with video"):
        self.press(name)
        self.sees("#call")

    def ring(self, person):
        """Adds somebody to the running call."""
        self.press("Add people")
        self.fill("Add people", person)
        self.press("Ring them")

    def verify(self, person):
        """Confirms that the code matches somebody's."""
        self.press("Call code")
        self.press(f"They match: {person}")
        self.hears(f"{person} is verified")
        self.click("#code-dialog button", "Close")

    def devices(self):
        """Opens the list of this person's own devices."""
        self.press("Devices")
        self.sees("#own-device-list [data-level=this]")

    @property
    def device(self):
        return self.driver.execute_script("return JSON.parse(sessionStorage.getItem('device')).device")

    def of_device(self, action, device):
        """Presses a button in the row of another own device."""
        # Finds and presses it in one step: otherwise the row might be redrawn in between.
        press = """
          const button = document.querySelector(`#own-device-list [data-device='${arguments[0]}'] [aria-label^='${arguments[1]}']`);
          if (!button?.checkVisibility()) return false;
          button.click();
          return true;
        """
        wait_for(lambda: self.driver.execute_script(press, device, action), 10, f"{self.name} presses “{action}” of {device}")

    def do_not_disturb(self, choice="Until I turn it off"):
        self.press("Do not disturb")
        self.press(choice)
        self.sees("#availability.pressed")

    def only_verified(self):
        self.devices()
        self.driver.find_element(By.ID, "verified-only").click()
        self.click("#devices-dialog button", "Close")

    def open_setup(self):
        """Opens "Camera and sound" in the lobby. If the browser will ask for permission, the page explains that first."""
        self.press("Camera and sound")
        wait_for(lambda: self.shown("#preview-allow, #setup-video"), 10, f"{self.name} sees the own picture, or why the browser asks for it")
        if self.shown("#preview-allow"):
            self.press("Turn on camera and microphone")
        self.sees("#setup-video")

    def leave(self):
        self.press("Leave")
        self.sees("#lobby")

    def call_code(self):
        """The 40 digits, which the page may show as words; empty when there are none yet."""
        self.press("Call code")
        code = self.driver.execute_script("return document.getElementById('call-code').dataset.code")
        self.press("Close")
        return code

    # The page as a person sees it

    def shown(self, selector):
        """How many elements of a selector are visible."""
        return self.driver.execute_script(
            "return [...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility()).length", selector
        )

    def sees(self, selector, seconds=10):
        wait_for(lambda: self.shown(selector), seconds, f"{self.name} sees {selector}")

    def loses(self, selector, seconds=10):
        wait_for(lambda: not self.shown(selector), seconds, f"{self.name} no longer sees {selector}")

    def text(self, selector):
        """The text of the element; empty if there is none."""
        return self.driver.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText).join(' ')", selector
        )

    def hears(self, words, seconds=10):
        """Waits for a notice that a screen reader announces."""
        wait_for(lambda: self.driver.execute_script("return conclaveSaid(arguments[0])", words), seconds, f"{self.name} is told “{words}”")

    def screenshot(self, path):
        self.driver.save_screenshot(str(path))

    # Received media

    def received(self):
        return self.driver.execute_async_script("conclaveReceived().then(arguments[0])")

    def told(self):
        """The tiles, and how much of each video arrived: for the message of a failure."""
        return self.driver.execute_async_script("conclaveTold().then(arguments[0])")

    def sent(self):
        """The layers of this person's camera: `{"q": {"height": 270, "frames": 31}, …}`."""
        return self.driver.execute_async_script("conclaveSent().then(arguments[0])")

    def decodes(self, *tracks, voices, seconds=5):
        """Waits until video of each of `tracks` ("bob/camera") and the sound of `voices` people keep arriving, within `seconds`."""
        # A slot keeps its count when it shows another track, and a track may move: only the count of a track in the same slot can be compared.
        first, now = {}, {}

        def rises():
            received = self.received()
            now.clear()
            now.update({(track, slot): frames for track, (slot, frames) in received["video"].items()})
            now.update({("voice", slot): samples // 960 for slot, samples in received["audio"].items()})
            for key, count in now.items():
                first.setdefault(key, count)
            risen = [track for (track, slot), count in now.items() if count > first[track, slot] + 4]
            return set(tracks) <= set(risen) and risen.count("voice") >= voices

        what = f"{self.name} decodes {', '.join(tracks)} and {voices} voices"
        says = "#call-title, #call-path, #warnings, #call-notice, #notices"
        wait_for(rises, seconds, lambda: f"{what}; from {first} to {now}; the page says: {self.text(says)}; {self.told()}")

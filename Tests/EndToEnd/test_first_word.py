"""The first word is heard: no audio frame is lost when a call begins, grows, or resumes after a hold."""

import array
import math
import wave

import pytest

from browser import started
from conftest import wait_for

RATE = 48_000

# Records what each frame worker reports, and when others were first heard. The worker reports once a second.
COUNTERS = """
(() => {
  const workers = [];
  window.Worker = class extends Worker {
    constructor(...parameters) {
      super(...parameters);
      const worker = { slots: [], tracks: [], reports: 0 };
      workers.push(worker);
      this.addEventListener('message', ({ data }) => {
        if (data.type === 'report') Object.assign(worker, { slots: data.slots, tracks: data.tracks ?? [], reports: worker.reports + 1 });
      });
    }
  };
  const sum = (list, name) => list.reduce((total, entry) => total + (entry[name] ?? 0), 0);
  window.conclaveFrames = () => {
    const { slots, tracks, reports } = workers.at(-1) ?? { slots: [], tracks: [], reports: 0 };
    const heard = Object.fromEntries(slots.filter(({ kid }) => kid).map(({ kid, opened }) => [Math.floor(kid / 65536), opened]));
    return { reports, heard, failed: sum(slots, 'failed'), foreign: sum(slots, 'foreign'), sealed: sum(tracks, 'sealed'), withheld: sum(tracks, 'withheld') };
  };
  window.conclaveSpeak = async (isOn) => {
    for (const peer of conclavePeers) {
      for (const sender of peer.connectionState === 'closed' ? [] : peer.getSenders()) {
        if (!isOn && sender.track?.kind === 'audio') [sender.spoken] = [sender.track, await sender.replaceTrack(null)];
        if (isOn && sender.spoken) await sender.replaceTrack(sender.spoken);
      }
    }
  };
  const wallClock = () => performance.timeOrigin + performance.now();
  window.conclaveListen = () => {
    window.conclaveHeardAt = 0;
    const listen = async () => {
      for (const peer of conclavePeers) {
        if (peer.connectionState === 'closed') continue;
        for (const report of (await peer.getStats()).values()) {
          if (report.type === 'inbound-rtp' && report.totalAudioEnergy > 1e-4) window.conclaveHeardAt ||= wallClock();
        }
      }
      if (!window.conclaveHeardAt) setTimeout(listen, 10);
    };
    listen();
  };
  document.addEventListener('click', () => (window.conclavePressedAt = wallClock()), true);
})();
"""


@pytest.fixture
def server(fresh_server):
    """The same people on another test's server would rejoin the call that they have just lost."""
    return fresh_server


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """A file with a word of two syllables, said again and again: vowels of a voice at 120 Hz."""
    samples = array.array("h")
    for index in range(RATE):
        at = index / RATE % 0.5
        loudness = math.sin(math.pi * at / 0.3) if at < 0.3 else 0
        voice = sum(math.sin(2 * math.pi * 120 * n * index / RATE) / n for n in range(1, 12))
        samples.append(round(9_000 * loudness * voice))
    path = tmp_path_factory.mktemp("voice") / "word.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.tobytes())
    return path


@pytest.fixture
def speaker(person, spoken):
    """Somebody who speaks into the microphone continuously."""
    return lambda name: person(name, COUNTERS, driver=started(None, f"--use-file-for-fake-audio-capture={spoken}"))


def frames(tab):
    return tab.driver.execute_script("return conclaveFrames()")


def hushed(*tabs):
    """Mutes everybody, waits until all sent frames have arrived, and returns each one's counters."""
    for tab in tabs:
        tab.driver.execute_async_script("conclaveSpeak(false).then(arguments[0])")
    seen = {}

    def still():
        now = [frames(tab) for tab in tabs]
        facts = [{key: count for key, count in one.items() if key != "reports"} for one in now]
        if seen.get("facts") != facts:
            seen.update(facts=facts, since=[one["reports"] for one in now])
        # Frames wait for at most a second, and reports come once a second.
        return all(one["reports"] >= before + 3 for one, before in zip(now, seen["since"]))

    wait_for(still, 20, lambda: f"no frame is in flight: {seen.get('facts')}")
    return seen["facts"]


def nothing_failed(tabs, counters):
    for tab, count in zip(tabs, counters):
        assert (count["failed"], count["foreign"]) == (0, 0), f"{tab.name}: {counters}"
        assert not tab.driver.execute_script("return conclaveSaid('could not be decrypted')"), tab.name


def hears_for_a_while(tab, participant, count):
    wait_for(lambda: frames(tab)["heard"].get(str(participant), 0) > count, 20, lambda: f"{tab.name} hears {participant}: {frames(tab)}")


def hold(tab, is_held):
    tab.driver.execute_script("document.getElementById('toggle-hold').click()")
    tab.sees(f"#toggle-hold[aria-pressed={'true' if is_held else 'false'}], #show-more")


def in_an_audio_call(caller, callee):
    caller.fill("People", callee.name)
    caller.press("Audio call")
    caller.sees("#call")
    caller.driver.execute_script("conclaveListen()")
    callee.answer("Accept with audio")


def test_all_that_a_callee_says_is_heard_from_the_first_syllable(speaker, artifacts):
    alice, bob = tabs = speaker("Alice"), speaker("Bob")
    in_an_audio_call(alice, bob)
    hears_for_a_while(alice, 2, 150)
    hears_for_a_while(bob, 1, 150)
    heard_at = alice.driver.execute_script("return conclaveHeardAt")
    pressed_at = bob.driver.execute_script("return conclavePressedAt")
    assert heard_at > pressed_at > 0, "a word was heard, and after the press"
    (artifacts / "first-word.txt").write_text(f"heard {heard_at - pressed_at:.0f} ms after “Accept with audio”\n")
    counters = hushed(*tabs)
    nothing_failed(tabs, counters)
    said, heard = counters[1]["sealed"], counters[0]["heard"]["2"]
    assert counters[1]["withheld"] == 0, "a microphone is sent only when there is a key"
    assert said == heard > 150, f"{said - heard} of {said} frames were lost: {counters}"


def test_a_hold_and_a_newcomer_cost_no_sound(speaker):
    alice, bob = speaker("Alice"), speaker("Bob")
    in_an_audio_call(alice, bob)
    hears_for_a_while(alice, 2, 50)
    hears_for_a_while(bob, 1, 50)
    # Everything that Bob says after his hold is heard.
    hold(bob, True)
    alice_before, bob_before = hushed(alice, bob)
    hold(bob, False)
    hears_for_a_while(alice, 2, alice_before["heard"]["2"] + 100)
    alice_after, bob_after = counters = hushed(alice, bob)
    nothing_failed((alice, bob), counters)
    said = bob_after["sealed"] - bob_before["sealed"]
    assert said == alice_after["heard"]["2"] - alice_before["heard"]["2"] > 50, (alice_before, bob_before, counters)
    # While somebody joins, speakers lose nothing, and the newcomer is heard from the first word on.
    for tab in (alice, bob):
        tab.driver.execute_async_script("conclaveSpeak(true).then(arguments[0])")
    carol = speaker("Carol")
    alice.ring("Carol")
    carol.answer("Accept with audio")
    for listener, others in ((alice, (2, 3)), (bob, (1, 3)), (carol, (1, 2))):
        for other in others:
            hears_for_a_while(listener, other, frames(listener)["heard"].get(str(other), 0) + 100)
    tabs = alice, bob, carol
    grown = hushed(*tabs)
    nothing_failed(tabs, grown)
    for place, name in ((1, "Bob"), (2, "Carol")):
        number = str(place + 1)
        said = grown[place]["sealed"] - (bob_after["sealed"] if name == "Bob" else 0)
        heard = grown[0]["heard"][number] - (alice_after["heard"]["2"] if name == "Bob" else 0)
        assert said == heard > 50, (name, number, said, heard, grown)

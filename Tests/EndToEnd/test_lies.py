"""Real browsers against a server that lies, and members with other clients: the rows of Tests/Vectors/lies.json, by number.

In every row the hook on WebCrypto sees each key and nonce: none repeats, and no sealing key can be derived from what the server was given.
"""

import re

import lies_about_admissions  # noqa: F401
import lies_about_frames  # noqa: F401
import lies_about_keys  # noqa: F401
import lies_about_lists  # noqa: F401
import lies_about_trust  # noqa: F401
import lies_of_members  # noqa: F401
import pytest
import told_lists
from conftest import Server, wait_for
from lying_proxy import LyingProxy
from lying_stage import LIES, NUMBERS, POOL, ROWS, WATCHES, Stage


# Rows that are not told to a browser, and why. Rows 300 to 312 need a moment between two turns of a cipher, a frame that no page makes, or the access to the
# client's state that Tests/WebTests/world has.
EXCUSED = {
    **dict.fromkeys(range(300, 313), "told to the same modules in Tests/WebTests/world"),
    330: "told to the page's modules in virtual time, and drawn tile by tile",
    331: "told to the page's modules in virtual time",
    333: "needs a browser that knows a device from before, and one that does not; told to the page's modules",
    335: "needs a press within half a second; told to the page's modules",
    336: "needs a person from an earlier call; told to the page's modules",
    337: "told to the page's modules",
    338: "needs a message that comes at the moment of a switch; told to the page's modules",
    339: "needs a browser that knows a device from before; told to the page's modules",
    340: "needs a look into the client; told to the page's modules",
    420: "needs answers that come at chosen moments; told to the page's modules",
    **dict.fromkeys(range(421, 427), "other words of guests, which look the same on the page; told to the page's modules"),
    **dict.fromkeys([427, 428], "needs words of a link whose secret the test has; told to the page's modules"),
    **dict.fromkeys(range(429, 436), "needs the words and the secret of a lasting link; told to the page's modules"),
    **dict.fromkeys(range(440, 455), "needs statements and words signed by chosen devices; told to the page's modules"),
    **dict.fromkeys([404, 405, 406, 407, 410, 411, 413, 414, 415, 416, 418, 419], "other chains of words, which look the same on the page; told to the page's modules"),
}


@pytest.fixture(scope="module")
def lying_server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("lying"))
    yield running
    for watch in WATCHES:
        watch.close()
    for tab in POOL:
        tab.close()
    running.stop()


@pytest.fixture
def stage(lying_server, request, artifacts):
    proxy = LyingProxy(lying_server)
    stage = Stage(lying_server, proxy, next(NUMBERS))
    yield stage
    name = re.sub(r"\W+", "-", request.node.name)
    for tab in stage.tabs:
        (artifacts / f"{name}-{tab.user}.log").write_text(tab.log)
        tab.screenshot(artifacts / f"{name}-{tab.user}.png")
    stage.close()
    proxy.close()


@pytest.mark.parametrize("number, tell_the_lie, variant", ROWS)
def test_row(stage, number, tell_the_lie, variant):
    warned = tell_the_lie(stage) if variant is None else tell_the_lie(stage, variant)
    assert stage.optional or all(lie.told for lie in stage.proxy.lies), "a lie was not told: the row tests nothing"
    lists = stage.proxy.lists
    stage.audit.check(told_lists.known_keys(lists.ghosts, lists.all), stage.hearers)
    assert bool(warned) == LIES[number]["warns"], f"row {number}: the function and the table differ on who is warned"
    for tab in warned:
        stage.warns(tab, stage.wait)


def test_each_row_of_the_table_is_told_or_excused():
    told = {case.values[0] for case in ROWS}
    assert not told & EXCUSED.keys(), "a row that is told needs no excuse"
    assert told | EXCUSED.keys() == {number for number, row in LIES.items() if row.get("only", "web") == "web"}


def test_the_audit_notices_a_nonce_that_is_used_twice(stage):
    tab = stage.tab("Alice")
    seal = """
        const done = arguments[0];
        (async () => {
          const key = await crypto.subtle.importKey('raw', new Uint8Array(32), 'AES-GCM', false, ['encrypt']);
          const seal = (...iv) => crypto.subtle.encrypt({ name: 'AES-GCM', iv: Uint8Array.from([...Array(11).fill(0), ...iv]) }, key, new Uint8Array(4));
          for (const number of [1, 2, 1]) await seal(number);
          done();
        })();
    """
    tab.driver.execute_async_script(seal)
    wait_for(lambda: len(stage.audit.sealed) >= 3, 5, "the hook sees what is sealed")
    assert len(stage.audit.repeats()) == 1
    with pytest.raises(AssertionError, match="used again"):
        stage.audit.check()

"""How much of the web client a browser loads and when."""

import time

from conftest import wait_for

FIRST_LOAD = 150_000  # bytes, including 300 for the headers of each answer (Resource Timing, `transferSize`)

TRANSFERRED = """
return [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].map(({ name, transferSize }) => [new URL(name).pathname, transferSize]);
"""


def all_that_is_loaded(tab):
    """The size of each loaded file by path, once none has come for a second."""
    seen = {"files": [], "since": time.monotonic()}

    def is_quiet():
        files = tab.driver.execute_script(TRANSFERRED)
        if files != seen["files"]:
            seen.update(files=files, since=time.monotonic())
        return time.monotonic() - seen["since"] > 1

    wait_for(is_quiet, 20, "no more files come")
    return dict(seen["files"])


def test_the_first_load_is_small_and_the_rest_comes_while_the_name_is_typed(person, artifacts):
    tab = person("Alice", words=None)
    tab.sees("#welcome")
    first = all_that_is_loaded(tab)
    together = sum(first.values())
    (artifacts / "first-load.txt").write_text("\n".join(f"{size:7} {path}" for path, size in sorted(first.items())) + f"\n{together:7} together\n")
    assert "/page/app.js" in first and "/page/style.css" in first
    assert 10_000 < together < FIRST_LOAD
    assert {path for path in first if path.startswith("/conclave/")} == {"/conclave/guests.js", "/conclave/support.js"}, "the library waits for a sign-in"

    tab.fill("Your name", "Alice")
    typed = all_that_is_loaded(tab)
    assert "/conclave/keys/keys.js" in typed and "/page/call-view.js" in typed
    tab.press("Sign in")
    tab.sees("#lobby")
    signed_in = all_that_is_loaded(tab)
    late = {path for path in set(signed_in) - set(typed) if path.endswith(".js")}
    assert late <= {"/sw.js"}, "signing in waits for no module"
    (artifacts / "all-loads.txt").write_text(f"{len(signed_in)} files, {sum(signed_in.values())} bytes\n")

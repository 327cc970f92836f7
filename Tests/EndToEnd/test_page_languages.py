"""The page in other languages: the browser's own, or the one that the person chooses."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from conftest import wait_for
from test_browsers import everybody_decodes

GERMAN = "Object.defineProperty(navigator, 'languages', { value: ['de-AT', 'en'] });"

# English words that the page must not show in another language, except those that are the same everywhere.
SHOWN = """
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const texts = [];
while (walker.nextNode()) {
  const parent = walker.currentNode.parentElement;
  if (parent.closest('noscript, option, .brand, kbd') || !parent.checkVisibility()) continue;
  texts.push(walker.currentNode.data.trim());
}
const labels = [...document.querySelectorAll('[aria-label], [placeholder], [title]')].flatMap((node) => [node.ariaLabel, node.placeholder, node.title]);
return [...texts, ...labels].filter((text) => text && /[A-Za-z]{3}/.test(text));
"""

EDGES = "const { left, right } = document.querySelector(arguments[0]).getBoundingClientRect(); return [left, innerWidth - right]"


@pytest.fixture
def server(fresh_server):
    return fresh_server


def language_of(tab):
    return tab.driver.execute_script("return [document.documentElement.lang, document.documentElement.dir]")


def catalogues(tab):
    """The languages whose texts were loaded."""
    script = "return performance.getEntriesByType('resource').map(({ name }) => /catalogues\\/(\\w+)\\.js/.exec(name)?.[1]).filter(Boolean)"
    return tab.driver.execute_script(script)


def test_the_browser_s_language_is_used_and_no_other_is_loaded(person, look):
    greta = person("Greta", GERMAN, words=("Dein Name", "Anmelden"))
    assert language_of(greta) == ["de", "ltr"]
    assert catalogues(greta) == ["de"]
    assert "Wen möchtest du anrufen?" in greta.text("#lobby-title")
    greta.fill("Personen", "nobody-of-that-name,")
    wait_for(lambda: "hat sich hier noch niemand angemeldet" in greta.text("#call-error"), 10, "a typing error is reported")
    look(greta, "the lobby in German")


def test_a_chosen_language_that_is_written_from_right_to_left_turns_the_page_and_is_kept(person, artifacts):
    amal, bob = person("Amal"), person("Bob")
    assert language_of(amal) == ["en", "ltr"]
    english = amal.driver.execute_script(EDGES, ".brand")
    Select(amal.driver.find_element(By.ID, "language")).select_by_value("ar")
    wait_for(lambda: language_of(amal) == ["ar", "rtl"] and amal.shown("#lobby"), 10, "the lobby in Arabic")
    arabic = amal.driver.execute_script(EDGES, ".brand")
    assert english[0] < english[1] and arabic[1] < arabic[0], "the name of the page is on the other side"
    amal.screenshot(artifacts / "lobby-arabic.png")
    amal.driver.find_element(By.ID, "people").send_keys("Bob")
    amal.driver.find_element(By.ID, "call-video").click()
    amal.sees("#call")
    bob.answer()
    everybody_decodes(amal, bob)
    assert [text for text in amal.driver.execute_script(SHOWN) if "Bob" not in text and "Amal" not in text] == []
    assert amal.driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    own = amal.driver.execute_script(EDGES, ".tile.own")
    assert own[0] < own[1], "one's own picture is in the corner where the lines end"
    amal.screenshot(artifacts / "call-arabic.png")
    amal.driver.find_element(By.ID, "toggle-chat").click()
    amal.sees("#chat")
    chat = amal.driver.execute_script(EDGES, "#chat")
    assert chat[0] < chat[1]
    amal.screenshot(artifacts / "chat-arabic.png")
    amal.driver.refresh()
    everybody_decodes(amal, bob, seconds=10)
    assert language_of(amal) == ["ar", "rtl"] and catalogues(amal) == ["ar"]

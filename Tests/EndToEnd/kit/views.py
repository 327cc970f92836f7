"""Checks what a page shows with axe-core, or takes pictures of it for `deploy/screenshots`."""

import importlib.resources
import os
import pathlib
import re

from conftest import PATIENCE

AXE = (importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text()

# Checks WCAG 2.2 AA and axe-core's best practices. The landmarks of a page of dialogs are behind the dialogs. In the other colour scheme only the colours
# differ.
RUN = """
const [isWhole, done] = arguments;
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const options = isWhole ? { runOnly: tags, rules: { 'target-size': { enabled: true } } } : { runOnly: { type: 'rule', values: ['color-contrast'] } };
axe.run(document, { ...options, resultTypes: ['violations'] }).then(
  ({ violations, passes }) => done([violations.map(({ id, nodes }) => [id, nodes.map(({ html, any }) => [html.slice(0, 200), any.map(({ message }) => message)])]), passes.length]),
  (error) => done([[['error', String(error)]], 0]),
);
"""

# The folder for a picture of each view in each of these ways, instead of axe-core's checks.
PICTURES = os.environ.get("CONCLAVE_SCREENSHOTS")


def screen(width, height, scale=1, mobile=False):
    return {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile}


# The colour scheme, the screen, and another language with its direction.
WAYS = {
    "light": ("light", None, None),
    "dark": ("dark", None, None),
    "phone": ("light", screen(390, 844, 2, True), None),
    "phone-landscape": ("dark", screen(844, 390, 2, True), None),
    "tablet": ("light", screen(820, 1180, 2, True), None),
    # A page at 200 % has half as many CSS pixels.
    "zoom": ("light", screen(640, 400, 2), None),
    # A different size than before, so that the stage is drawn again.
    "right-to-left": ("light", screen(1200, 700), ("ar", "rtl")),
    # The language with the longest words and texts, where space is tightest.
    "long-words": ("dark", screen(390, 844, 2, True), ("de", "ltr")),
}


def translation(lang, dir):
    folder = pathlib.Path(__file__).parent
    catalogue = (folder / f"../../../Sources/Web/page/catalogues/{lang}.js").read_text().partition("export default ")[2]
    return f"const [lang, dir] = ['{lang}', '{dir}'];\nconst catalogue = {catalogue}\n{(folder / 'translation.js').read_text()}"


def is_accessible(tab, view, is_whole=True):
    """Asserts that axe-core finds nothing in the view. It checks every element, which takes a while on a busy machine."""
    tab.driver.set_script_timeout(60 * PATIENCE)
    if not tab.driver.execute_script("return Boolean(window.axe)"):
        tab.driver.execute_script(AXE)
    found, passed = tab.driver.execute_async_script(RUN, is_whole)
    assert found == [] and passed > (10 if is_whole else 0), f"{view}: {found}"


def emulate(tab, scheme):
    """Light or dark, and without fading: otherwise a colour in between would be measured."""
    features = [{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]
    tab.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def photograph(tab, view):
    """Takes a picture of the view in each way, and leaves the page unchanged."""
    name = re.sub(r"[^a-z0-9]+", "-", view.lower()).strip("-")
    is_english = tab.driver.execute_script("return document.documentElement.lang === 'en'")
    for way, (scheme, metrics, language) in WAYS.items():
        if language and not is_english:
            continue
        emulate(tab, scheme)
        if language:
            assert tab.driver.execute_async_script(translation(*language)) == ""
        if metrics:
            tab.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        # The stage redraws its tiles a moment after a change of the page's size.
        tab.driver.execute_async_script("setTimeout(arguments[0], 400)")
        tab.screenshot(pathlib.Path(PICTURES) / f"{name}-{way}.png")
        if language:
            tab.driver.execute_script("conclaveEnglish()")
        tab.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    tab.driver.execute_async_script("setTimeout(arguments[0], 400)")


def look(tab, view):
    """Checks what `tab` shows now; `view` is its name."""
    if PICTURES:
        return photograph(tab, view)
    emulate(tab, "light")
    is_accessible(tab, f"{view}, light")
    emulate(tab, "dark")
    is_accessible(tab, f"{view}, dark", is_whole=False)
    tab.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

"""The configurations and commands in the documents, for tests that run them."""

import pathlib
import re

DOCS = pathlib.Path(__file__).parents[3] / "docs"


def recipe(document, language, start=""):
    """The text of the only code block of a document with this language and this beginning."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", (DOCS / document).read_text(), re.S | re.M)
    found = [block for block in blocks if block.startswith(start)]
    assert len(found) == 1, f"docs/{document} has {len(found)} blocks of {language} that begin with {start!r}"
    return found[0]

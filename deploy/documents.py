"""Copies docs/ to a folder, such as /usr/share/doc/conclave, so that every link works there: deploy/documents.py FOLDER

Files of deploy/ and of the repository's root to which the documents link are copied, too. A link without a target is an error.
"""

import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def is_elsewhere(link):
    return "://" in link or link.startswith(("#", "mailto:"))


def copied(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def main(folder):
    shutil.copytree(ROOT / "docs", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    copied(ROOT / "CHANGELOG.md", folder / "CHANGELOG.md")
    for document in sorted(folder.rglob("*.md")):
        origin = ROOT / "CHANGELOG.md" if document.name == "CHANGELOG.md" else ROOT / "docs" / document.relative_to(folder)

        def here(match):
            link = match[1]
            if is_elsewhere(link):
                return match[0]
            path, hash_, part = link.partition("#")
            source = (origin.parent / path).resolve()
            if not source.exists():
                sys.exit(f"{origin}: {link} leads nowhere")
            if source.is_relative_to(ROOT / "docs"):
                place = source.relative_to(ROOT / "docs")
            else:
                place = source.relative_to(ROOT)
                if source != ROOT / "CHANGELOG.md":  # already copied, with its links
                    copied(source, folder / place)
            return f"]({'../' * len(document.relative_to(folder).parents[:-1])}{place}{hash_}{part})"

        document.write_text(LINK.sub(here, document.read_text()))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

"""`.ci/plain-words` finds sentences that readers stumble over, and accepts usual ones."""

import pathlib
import subprocess

import pytest

LINT = pathlib.Path(__file__).parents[2] / ".ci/plain-words"

# Slashes stand for the spaces of sentences that the lint would find here, too.
FOUND = [
    "Who/leaves/is/gone.",
    "Of/microphones/nothing/is/wished.",
    "It/is/for/who/has/it.",
    "A token of another form is none.",
    "The count begins anew.",
    "It counts for the first alone.",
    "The member is in the call no more.",
    "A report is sent each 20 ms.",
    "Datagrams were lost for want of memory.",
    "The parts run beside each other.",
    "The server says nothing of its queue.",
]
CLEAN = [
    "Who leaves?",
    "There is none.",
    "Packets of padding alone are dropped.",
    "There are no more.",
    "A report takes 20 ms for each 5 s.",
    "A report is sent every 20 ms.",
    "The tiles are side by side.",
]


def found(tmp_path, name, text):
    file = tmp_path / name
    file.write_text(text)
    run = subprocess.run([LINT, file], capture_output=True, text=True)
    lines = run.stdout.splitlines()
    assert run.returncode == (1 if lines else 0), run.stderr
    return lines


@pytest.mark.parametrize("sentence", FOUND)
def test_a_comment_and_the_name_of_a_test_are_read(tmp_path, sentence):
    sentence = sentence.replace("/", " ")
    for name, text in (("a.swift", f"/// {sentence}\n"), ("a.test.mjs", f"test('{sentence[:-1]}', () => {{}});\n"), ("a.md", f"{sentence}\n")):
        assert len(found(tmp_path, name, text)) == 1, text


@pytest.mark.parametrize("sentence", CLEAN)
def test_usual_sentences_pass(tmp_path, sentence):
    assert found(tmp_path, "a.swift", f"/// {sentence}\n") == []


def test_a_text_in_the_code_may_have_any_word(tmp_path):
    assert found(tmp_path, "a.swift", 'let text = "a token of another form is none"\n') == []

"""Stand-ins for the files that the scripts in `deploy` source, for tests that run these scripts in a folder of their own."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[3]


def debian_with_all_packages():
    """The text of a `deploy/debian.sh` whose packages are all installed. Its variables are those of the real one, all empty, so that a script which uses a
    new one still finds it."""
    names = re.findall(r"^(\w+)=", (ROOT / "deploy/debian.sh").read_text(), re.M)
    assert "swift_flags" in names, "read the names again: deploy/debian.sh declares its variables in another way"
    return "".join(f"{name}=\n" for name in names) + "install() { :; }\n"

"""Writes a program's man page from its own description of its commands: PROGRAM --experimental-dump-help | deploy/manual.py NAME VERSION"""

import datetime
import json
import os
import sys


def plain(text):
    """The text with roff's special characters escaped."""
    text = (text or "").replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in ".'" else line for line in text.splitlines())


def option(argument):
    names = ", ".join(f"\\fB{plain(('--' if name['kind'] == 'long' else '-') + name['name'])}\\fR" for name in argument.get("names") or [])
    value = f"\\fI{plain(argument.get('valueName', ''))}\\fR"
    if argument["kind"] == "positional":
        return value
    return names if argument["kind"] == "flag" else f"{names} {value}"


def options(command):
    shown = [argument for argument in command.get("arguments") or [] if argument.get("shouldDisplay", True)]
    # Every command has these two.
    own = [argument for argument in shown if not {name["name"] for name in argument.get("names") or []} & {"help", "version"}]
    return "".join(f".TP\n{option(argument)}\n{plain(argument.get('abstract'))}\n" for argument in own)


def page(command, name, version, day):
    lines = [f'.TH {name.upper()} 1 {day} "Conclave {version}"', ".SH NAME", f"{plain(name)} \\- {plain(command['abstract'].rstrip('.'))}", ".SH SYNOPSIS"]
    commands = [each for each in command.get("subcommands") or [] if each.get("shouldDisplay", True) and each["commandName"] != "help"]
    if commands:
        lines += [f".B {plain(name)}", "\\fIcommand\\fR [\\fIoptions\\fR]", ".SH COMMANDS"]
        for each in sorted(commands, key=lambda each: each["commandName"]):
            lines += [f".SS {plain(each['commandName'])}", plain(each["abstract"]), plain(each.get("discussion")), options(each).rstrip()]
    else:
        lines += [f".B {plain(name)}", "[\\fIoptions\\fR]", ".SH OPTIONS", options(command).rstrip()]
    lines += [".SH FILES", "/usr/share/doc/conclave/ has the guides for operators and the authors of clients."]
    return "\n".join(line for line in lines if line) + "\n"


if __name__ == "__main__":
    at = int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now().timestamp())
    day = datetime.datetime.fromtimestamp(at, datetime.timezone.utc).date().isoformat()
    sys.stdout.write(page(json.load(sys.stdin)["command"], sys.argv[1], sys.argv[2], day))

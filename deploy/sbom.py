#!/usr/bin/env python3
"""Prints the components of the server as CycloneDX 1.5: the Swift packages that were compiled into it, the Swift runtime, and Debian's libraries.

    sbom.py BUILD VERSION DEPENDS    BUILD: the folder of the program; DEPENDS: as in a Debian control file
"""

import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

ROOT = pathlib.Path(__file__).parents[1]
# The licences of Debian's libraries, since their copyright files list one for each source file.
DEBIAN = {
    "libc6": "LGPL-2.1-or-later",
    "libcurl4": "curl",
    "libgcc-s1": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libjansson4": "MIT",
    "libnice10": "LGPL-2.1-only OR MPL-1.1",
    "libsqlite3-0": "blessing",
    "libssl3": "Apache-2.0",
    "libstdc++6": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "zlib1g": "Zlib",
}


def licence_of(folder):
    text = " ".join((next(folder.glob("LICENSE*"))).read_text().split())
    for words, licence in (("Apache License", "Apache-2.0"), ("Permission is hereby granted, free of charge", "MIT")):
        if words in text:
            return licence
    raise SystemExit(f"{folder.name}: unknown licence; name it in deploy/sbom.py")


def targets_of(folder):
    """Names of the package's targets, from its manifest."""
    manifest = (folder / "Package.swift").read_text()
    return set(re.findall(r'name: "([^"]+)"', manifest))


def swift_packages(build):
    """The components of the packages in Package.resolved from which something was compiled."""
    checkouts = pathlib.Path(os.path.realpath(build)).parents[1] / "checkouts"
    compiled = {file.name.removesuffix(".build") for file in pathlib.Path(build).glob("*.build")}
    for pin in json.loads((ROOT / "Package.resolved").read_text())["pins"]:
        folder = checkouts / pathlib.PurePath(pin["location"]).name.removesuffix(".git")
        if targets_of(folder) & compiled:
            place = re.sub(r"^https://|\.git$", "", pin["location"])
            yield component(pathlib.PurePath(place).name, pin["state"]["version"], f"pkg:swift/{place}@{pin['state']['version']}", licence_of(folder))


def vendored(build):
    """Third-party sources inside the Swift packages: BoringSSL by its commit, llhttp by its version."""
    checkouts = pathlib.Path(os.path.realpath(build)).parents[1] / "checkouts"
    for place in ("swift-crypto/Sources/CCryptoBoringSSL", "swift-nio-ssl/Sources/CNIOBoringSSL"):
        commit = re.search(r"[0-9a-f]{40}", (checkouts / place / "hash.txt").read_text())[0]
        package = place.split("/")[0]
        yield component("boringssl", commit, f"pkg:github/google/boringssl@{commit}?in={package}", "Apache-2.0 AND ISC AND OpenSSL")
    header = (checkouts / "swift-nio/Sources/CNIOLLHTTP/include/c_nio_llhttp.h").read_text()
    version = ".".join(re.search(rf"LLHTTP_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))
    yield component("llhttp", version, f"pkg:github/nodejs/llhttp@v{version}", "MIT")


def swift_runtime():
    version = re.search(r"Swift version ([\d.]+)", subprocess.run(["swift", "--version"], check=True, capture_output=True, text=True).stdout)[1]
    for name, licence in (
        ("swift", "Apache-2.0 WITH Swift-exception"),
        ("swift-corelibs-libdispatch", "Apache-2.0 WITH Swift-exception"),
        ("swift-corelibs-foundation", "Apache-2.0 WITH Swift-exception"),
        ("swift-foundation-icu", "Unicode-3.0"),
    ):
        yield component(name, version, f"pkg:github/swiftlang/{name}@swift-{version}-RELEASE", licence)


def debian_libraries(depends):
    for name in sorted({part.split()[0] for part in depends.split(", ")}):
        query = ["dpkg-query", "-W", "-f", "${Version} ${Architecture}", name]
        version, architecture = subprocess.run(query, check=True, capture_output=True, text=True).stdout.split()
        if name not in DEBIAN:
            raise SystemExit(f"{name}: unknown licence; name it in deploy/sbom.py")
        yield component(name, version, f"pkg:deb/debian/{name}@{version}?arch={architecture}&distro=debian-12", DEBIAN[name])


def component(name, version, purl, licence):
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, "licenses": [{"expression": licence}]}


def main():
    build, version, depends = sys.argv[1:]
    components = [*swift_packages(build), *vendored(build), *swift_runtime(), *debian_libraries(depends)]
    made = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    program = {"type": "application", "bom-ref": "conclave", "name": "conclave", "version": version, "licenses": [{"expression": "Apache-2.0"}]}
    # The name is derived from the content: the same sources give the same file.
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([program, components]))
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"timestamp": made.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": program},
        "components": components,
        "dependencies": [{"ref": "conclave", "dependsOn": [item["bom-ref"] for item in components]}],
    }
    print(json.dumps(bom, indent=1))


if __name__ == "__main__":
    main()

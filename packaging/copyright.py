#!/usr/bin/env python3
"""copyright.py PACKAGE [CARGO OPTIONS…]: the machine-readable copyright file (DEP-5) of what cargo links into PACKAGE.

Crates are those of `cargo tree` under the real features, without those that only run while building. Texts are the
files that the crates bring along, and for the few that bring none a text in packaging/licences. What has no text is an
error. Where a crate offers a choice, one is taken: the first below of which it brings the text.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

# By which words a text is known: its first and its last.
TEXTS = {
    "MIT": ("Permission is hereby granted, free of charge, to any person", r"DEALINGS\s+IN\s+THE\s+SOFTWARE\.?"),
    "ISC": ("Permission to use, copy, modify, and/?(?:or)? distribute this software", r"OF\s+THIS\s+SOFTWARE\."),
    "BSD-3-Clause": ("Redistribution and use in source and binary forms", r"endorse\s+or\s+promote.*?SUCH\s+DAMAGE\."),
    "BSD-2-Clause": (r"Redistribution and use in source and binary forms(?:(?!endorse).)*?SUCH DAMAGE\.", ""),
    "Zlib": ("This software is provided 'as-is'", r"source\s+distribution\."),
    "BSL-1.0": ("Boost Software License - Version 1.0", r"DEALINGS\s+IN\s+THE\s+SOFTWARE\."),
    "Unicode-3.0": ("UNICODE LICENSE V3", r"authorization\s+of\s+the\s+copyright\s+holder\."),
    "Apache-2.0": ("Apache License,? Version 2.0", ""),
}
APACHE = "On Debian systems the text is in /usr/share/common-licenses/Apache-2.0; elsewhere it is at\n" \
    "https://www.apache.org/licenses/LICENSE-2.0."
FULL_APACHE = re.compile(r"Apache License\s+Version 2\.0, January 2004.*?END OF TERMS AND CONDITIONS", re.S)
# Of these all files are given, as they say which part is under which licence.
WHOLE = {"ring"}
NOT_A_HOLDER = re.compile(r"copyright\s+(notice|holder|owner|license|statement|law|and\s+related|\[yyyy\]|\{yyyy\})|\[name of", re.I)


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], check=True, capture_output=True, text=True).stdout


def licence_files(folder):
    """The files of a crate that speak of its licence, in a fixed order."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        at_top = len(parts) == 1 or re.match(r"LICENSES?$|THIRD_PARTY", parts[0])
        if at_top and path.is_file() and any(re.match(r"(UN)?LICEN[SC]E|COPY|NOTICE|THIRD_PARTY", part, re.I) for part in parts):
            yield path


def text_of(name, text):
    first, last = TEXTS[name]
    found = re.search(first.replace(" ", r"\s+") + r".*?" + last, text, re.S)
    return found and found.group(0)


def holders(text):
    """The lines that say whose it is."""
    for line in text.splitlines():
        line = re.sub(r"\s+", " ", line.lstrip(" \t#/*>")).strip()
        if re.match(r"(portions )?(copyright|©|\(c\) \d)", line, re.I) and not NOT_A_HOLDER.search(line):
            yield line


def choose(expression, texts):
    """The licences to follow out of an SPDX expression, or None where a text is missing."""
    expression = expression.replace("/", " OR ")
    tokens = re.findall(r"[()]|[^\s()]+", expression)

    def either():
        found = [both()]
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            found.append(both())
        found = [names for names in found if names]
        return min(found, key=lambda names: max(list(TEXTS).index(name) for name in names)) if found else None

    def both():
        found = [one()]
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            found.append(one())
        return [name for names in found for name in names] if all(found) else None

    def one():
        token = tokens.pop(0)
        if token == "(":
            inner = either()
            tokens.pop(0)
            return inner
        return [token] if token in texts else None

    return either()


def paragraph(**fields):
    lines = []
    for name, value in fields.items():
        rows = value.rstrip().split("\n")
        lines.append(f"{name.replace('_', '-')}: {rows[0]}".rstrip())
        lines += [f" {row.rstrip()}" if row.strip() else " ." for row in rows[1:]]
    return "\n".join(lines) + "\n"


class Copyright:
    def __init__(self):
        self.files, self.licences, self.errors = [], {}, []

    def licence(self, name, text):
        """The name under which the text stands in the file; texts that differ in more than spaces get names of their own."""
        key = re.sub(r"\W+", " ", text).strip().lower()
        for known, (other, _) in self.licences.items():
            if other == key:
                return known
        count = sum(known.split("~")[0] == name for known in self.licences)
        known = f"{name}~{count + 1}" if count else name
        lines = text.strip().splitlines()
        # as little indented as the least indented line
        indents = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
        text = "\n".join([lines[0].strip()] + [line[min(indents, default=0):] for line in lines[1:]])
        self.licences[known] = (key, text)
        return known

    def add(self, files, holder_lines, names, comment):
        fields = {"Files": files, "Copyright": "\n".join(holder_lines), "License": " and ".join(names)}
        if comment:
            fields["Comment"] = comment
        self.files.append(paragraph(**fields))

    def crate(self, package):
        folder = Path(package["manifest_path"]).parent
        label = f"{package['name']} {package['version']}"
        files = list(licence_files(folder))
        own = HERE / "licences" / f"{package['name']}.txt"
        if own.exists():
            if files:
                self.errors.append(f"{label} brings a licence along now: remove {own}")
            files = [own]
        read = {path: path.read_text(encoding="utf-8", errors="replace") for path in files}
        texts = {}
        for path, content in read.items():
            for name in TEXTS:
                text = text_of(name, content)
                if text:
                    texts.setdefault(name, text)
        texts = {name: APACHE if name == "Apache-2.0" else text for name, text in texts.items()}
        expression = package["license"] or ""
        chosen = choose(expression, texts)
        if not chosen:
            self.errors.append(f"{label}: no text for its licence '{expression}' in {[path.name for path in files]}")
            return
        names = [self.licence(name, texts[name]) for name in dict.fromkeys(chosen)]
        parts = [path for path in files if package["name"] in WHOLE or "THIRD_PARTY" in str(path)]
        if parts:
            whole = "\n\n".join(f"{path.name}:\n\n{FULL_APACHE.sub(APACHE, read[path]).strip()}" for path in parts)
            names.append(self.licence(f"notices-of-{package['name']}", whole))
        lines = list(dict.fromkeys(line for content in read.values() for line in holders(content)))
        lines = lines or package["authors"] or [f"the authors of {package['name']}"]
        comment = f"Offered under {expression}." if " OR " in expression or "/" in expression else ""
        self.add(f"crates/{package['name']}-{package['version']}/*", lines, names, comment)

    def print(self, name, own_text):
        print(paragraph(Format="https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/", Upstream_Name=name, Comment=(
            "Paragraphs of crates/ are the crates from crates.io that are linked in, in the versions of Cargo.lock.")))
        holder = list(holders(own_text))
        known = self.licence("MIT", text_of("MIT", own_text))
        print(paragraph(Files="*", Copyright="\n".join(holder), License=known))
        print("\n".join(self.files))
        print("\n".join(paragraph(License=f"{known}\n{text}") for known, (_, text) in self.licences.items()))


def main():
    name, options = sys.argv[1], sys.argv[2:]
    metadata = json.loads(cargo("metadata", "--format-version=1", "--locked", *options))
    packages = {(package["name"], package["version"]): package for package in metadata["packages"]}
    # The wanted package's own features, not those that others in the workspace add.
    tree = cargo("tree", "--locked", "--package", name, "--edges", "normal,no-proc-macro", "--prefix", "none",
                 "--format", "{p}", *options)
    linked = sorted({tuple(line.split()[:2]) for line in tree.splitlines() if line})
    copyright = Copyright()
    for crate, version in linked:
        package = packages[crate, version.removeprefix("v")]
        if package["source"]:
            copyright.crate(package)
    standard = (HERE / "licences" / "rust-standard-library.txt").read_text()
    copyright.add("rust-standard-library/*", list(holders(standard)), [copyright.licence("MIT", text_of("MIT", standard))],
                  standard.split("\n\n")[0])
    if copyright.errors:
        sys.exit("\n".join(copyright.errors))
    copyright.print(name, (HERE.parent / "LICENSE").read_text())


if __name__ == "__main__":
    os.chdir(HERE.parent)
    main()

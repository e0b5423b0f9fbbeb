#!/usr/bin/env bash
# sbom.sh: writes what is linked into the extension and into the program, as CycloneDX, to target/sbom. The same
# bytes for the same commit.
. "$(dirname "$0")/../tests/harness/common.sh"
. "$root/packaging/tools.sh"

cargo_tool cargo-cyclonedx 0.5.9
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

# It writes beside the Cargo.toml of each crate that is a library to load or a program.
"$tools/bin/cargo-cyclonedx" cyclonedx --describe binaries --no-build-deps --format json --spec-version 1.5 -qq
rm -rf target/sbom
mkdir -p target/sbom
while read -r written name; do
  to="target/sbom/$name-$(version_of_tree)-linux-$(uname -m).cdx.json"
  sed "s|file://$root|file:///graph_kernel|g" "$written" >"$to"
  rm "$written"
  note "$to"
done <<'FILES'
graph_kernel_cdylib.cdx.json graph_kernel
src/cli/graph-kernel_bin.cdx.json graph-kernel
FILES

#!/usr/bin/env bash
# collect.sh TO FOLDER…: copies the files of a release, built on several machines, to one folder, and writes SHA256SUMS
# anew. What more than one machine has built must be the same, byte for byte.
. "$(dirname "$0")/../tests/harness/common.sh"

to=${1:?usage: collect.sh TO FOLDER…}
shift
mkdir "$to"
for folder in "$@"; do
  for file in "$folder"/*; do
    name=${file##*/}
    [[ $name != SHA256SUMS ]] || continue
    if [[ -e $to/$name ]]; then
      cmp "$file" "$to/$name" || die "$name is not the same in $*"
    else
      cp "$file" "$to/$name"
    fi
  done
done
cd "$to"
sums=$(sha256sum -- *) # first, so as not to read itself
note "$sums" | tee SHA256SUMS

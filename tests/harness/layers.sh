#!/usr/bin/env bash
# layers.sh [ROOT]: fails where a file of the sources uses a room that it may not (docs/architecture.md, The parts).
# In each list a room may use itself and those before it. Tests within a file may use all.
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"

# check FOLDER PREFIX ROOMS: names of rooms come after PREFIX in paths of Rust, and after FOLDER in those of files.
check() {
  find "$1" -name '*.rs' -not -name lib.rs -print0 | xargs -0 awk -v folder="$1" -v prefix="$2" -v rooms="$3" '
    BEGIN { count = split(rooms, list, " "); for (i = 1; i <= count; i++) place[list[i]] = i }
    FNR == 1 { room = substr(FILENAME, length(folder) + 2); sub(/\.rs$/, "", room); sub(/\/.*/, "", room); tests = 0
               if (!(room in place) && room != "mod" && room != "tests") {
                 print FILENAME ": room " room " is not in the list"; bad = 1 } }
    /^#\[cfg\((test|any\(test.*)\)\]$/ { tests = 1 }
    tests || !(room in place) || /^ *\/\// { next }
    { line = $0
      while (match(line, prefix "::[a-z_]+")) {
        used = substr(line, RSTART + length(prefix) + 2, RLENGTH - length(prefix) - 2)
        line = substr(line, RSTART + RLENGTH)
        if (place[used] > place[room]) { print FILENAME ":" FNR ": " room " may not use " used; bad = 1 } } }
    END { exit bad }'
}

status=0
check src/kernel crate 'named_enum interrupts hex json messages graph policy trust slicing export prompt binary
  verification retrieval evidence explain drawing chunking' || status=1
check src/pg crate::pg 'environment error shortage interrupts text guc fixed_settings statistics session
  subtransaction catalog sql trigger query private tables access' || status=1
check src crate 'kernel pg service api cli' || status=1
# Of the glue, the SQL functions use what arguments, rows and errors are made of.
if grep -rnE 'crate::pg\b' src/api --include='*.rs' |
  grep -vE 'crate::pg::((sql|text|trigger|error|interrupts)::|query::CallingQuery;|shortage::memory;)'; then
  echo 'src/api may not use this of pg: src/service calls it'
  status=1
fi
# The program is a crate of its own, which has the kernel alone.
if grep -rnE 'crate::(pg|service|api)\b|graph_kernel::' src/cli --include='*.rs'; then
  echo 'src/cli may use the kernel alone'
  status=1
fi
exit "$status"

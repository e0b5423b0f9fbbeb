#!/usr/bin/env bash
# figures.sh: draws docs/figures/why-*.svg anew, from the sample conversation in the database that PG* names.
. "$(dirname "$0")/common.sh"

command -v dot >/dev/null || die 'no dot: install Graphviz (apt-get install graphviz)'
anchor=a9ad8365-bc0a-5da2-93e6-e37e99d95d9c

# figure NAME POLICY WHAT: the slice as SVG, with the colours of theme.css and a name for who cannot see it.
figure() {
  local style="<style>$(tr -s '\n ' ' ' <docs/figures/theme.css)</style>"
  psql -X -At -v ON_ERROR_STOP=1 -v anchor="$anchor" -v policy="$2" -f - <<<"SELECT graph_slice_dot(graph_slice(:'anchor', :'policy'));" |
    dot -Tsvg |
    awk -v style="$style" -v what="$3" '/^<svg/ { sub(/^<svg/, "<svg role=\"img\" aria-label=\"" what "\"") }
      { print } /xmlns:xlink/ { print style }' >"docs/figures/$1.svg"
  note "docs/figures/$1.svg"
}

figure why-focused focused 'The slice of the preset focused: 28 turns around the anchor'
figure why-ten '{"max_nodes": 10}' 'The slice of ten turns around the same anchor'

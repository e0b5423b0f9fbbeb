#!/usr/bin/env bash
# figures.sh: draws docs/figures/why-*.svg and policies-*.svg anew, from the sample conversation in the database that
# PG* names.
. "$(dirname "$0")/common.sh"

command -v dot >/dev/null || die 'no dot: install Graphviz (apt-get install graphviz)'
anchor=a9ad8365-bc0a-5da2-93e6-e37e99d95d9c

# themed NAME WHAT: Graphviz's language as SVG, with the colours of theme.css and a name for who cannot see it.
themed() {
  local style
  style="<style>$(tr -s '\n ' ' ' <docs/figures/theme.css)</style>"
  dot -Tsvg |
    awk -v style="$style" -v what="$2" '/^<svg/ { sub(/^<svg/, "<svg role=\"img\" aria-label=\"" what "\"") }
      { print } /xmlns:xlink/ { print style }' >"docs/figures/$1.svg"
  note "docs/figures/$1.svg"
}

# figure NAME POLICY WHAT: the export of a slice at the anchor.
figure() {
  psql -X -At -v ON_ERROR_STOP=1 -v anchor="$anchor" -v policy="$2" -f - \
    <<<"SELECT graph_export_draw(graph_slice(:'anchor', :'policy'), 'dot');" |
    themed "$1" "$3"
}

# picture NAME ANCHOR POLICY WHAT: a slice with the beginnings of its contents.
picture() {
  psql -X -At -v ON_ERROR_STOP=1 -v anchor="$2" -v policy="$3" -f - \
    <<<"SELECT graph_slice_draw(:'anchor', :'policy', 'dot', '{\"chars\": 32}');" |
    themed "$1" "$4"
}

figure why-focused focused 'The slice of the preset focused: 28 turns around the anchor'
figure why-ten '{"max_nodes": 10}' 'The slice of ten turns around the same anchor'
picture policies-chat "$anchor" '{"preset": "chat", "max_tokens": 600}' \
  'Ten turns of a chat; calls are framed with their results'
picture policies-recall "$anchor" '{"preset": "recall", "max_tokens": 500, "seeds":
  {"944708e3-3cb7-565f-a2fc-971543aaaa99": 0.9, "ee76b8d6-817c-5696-918a-8a34a1af0a8b": 0.4}}' \
  'What a search has found, with what was said around it, beside the anchor'
picture policies-agent 944708e3-3cb7-565f-a2fc-971543aaaa99 '{"preset": "chat", "max_tokens": 700}' \
  'Nine results framed with their call, and the turns before it'
picture policies-notes "$anchor" \
  '{"version": "slice_policy_v2", "max_nodes": 12, "edge_weights": {"branch": 0.5}, "halving_seconds": 604800}' \
  'Twelve notes of three weeks'
picture policies-audit ee76b8d6-817c-5696-918a-8a34a1af0a8b '{"version": "slice_policy_v2", "as_of": 1768219200}' \
  'What was said before a date'

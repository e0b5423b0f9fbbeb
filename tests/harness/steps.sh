# shellcheck shell=bash
# Steps that are counted: for scripts that run many checks and close with "N passed, N failed". Sourced after common.sh;
# the caller sets `logs`, the folder of the steps' logs.

passed=0 failed=0 skipped=() failures=()

skip() {
  skipped+=("skipped: $1: $2")
  note "$1: skipped: $2"
}

# lack NAME REASON: what CI must not go without is absent.
lack() {
  if [[ -n ${CI:-}${STRICT:-} ]]; then
    failed=$((failed + 1))
    note "$1: 0 passed, 1 failed: $2"
  else
    skip "$@"
  fi
}

# step COUNTER NAME COMMAND…: runs it into a log, where COUNTER reads "PASSED FAILED". Leaves `bad`.
# Never call it in a condition: bash would then run COMMAND without set -e.
step() {
  local counter=$1 name=$2 status start=$SECONDS good left
  local log="$logs/${name//[^a-zA-Z0-9]/-}.log"
  shift 2
  printf '%s: ' "$name"
  set +e
  (set -e && "$@") >"$log" 2>&1 </dev/null
  status=$?
  set -e
  read -r good bad < <("$counter" "$log" "$status")
  # What ends in an error has failed, counted or not: a crash leaves no count.
  if ((status != 0 && bad == 0)); then bad=1; fi
  passed=$((passed + good)) failed=$((failed + bad))
  note "$good passed, $bad failed ($((SECONDS - start)) s)"
  if ((good + bad == 0)); then skip "$name" 'there is no test in it yet'; fi
  while read -r left; do
    skip "${left%%: *}" "${left#*: }"
  done < <(sed -nE 's/^SKIPPED: //p; s/^test (.*) \.\.\. ignored.*/\1: long, see make test-long/p' "$log" | sort -u)
  if ((bad != 0)); then
    tail -n 150 "$log"
    note "the whole log: $log"
    failures+=("failed: $name" "$(failures_of "$log")")
  fi
}

# What a log says of its failures: cargo's tests with what they panicked with, pg_regress's, and errors; else its end.
failures_of() {
  # Without head, which would end the others early.
  { grep -E -A 2 '^test .* FAILED|panicked at|^not ok|\.\.\. FAILED|^error' "$1" || tail -n 3 "$1"; } |
    cut -c 1-300 | sed -n '1,40s/^/  /p'
}

count_status() { if (($2 == 0)); then note '1 0'; else note '0 1'; fi; }
# A test that finds its data absent passes, having printed a line "SKIPPED: NAME: reason".
count_cargo() {
  awk '/^test result:/ { good += $4; bad += $6 }
    /^SKIPPED: / && !told[$0]++ { good-- }
    END { print good + 0, bad + 0 }' "$1"
}

# What failed, what was skipped, and the count; the status says whether all is well.
close_steps() {
  note ''
  if ((${#failures[@]} > 0)); then printf '%s\n' "${failures[@]}"; fi
  if ((${#skipped[@]} > 0)); then printf '%s\n' "${skipped[@]}"; fi
  note "$passed passed, $failed failed"
  ((failed == 0))
}

#!/usr/bin/env bash
# mutants.sh [K/N]: changes the kernel in one place after another, and runs its tests, which should fail each time.
# K/N takes each Nth of these mutants, evenly over all files: from 0/N to one before N/N.
# What the tests let pass must be in tests/mutants/survivors.txt; they must catch 95 % in any case.
. "$(dirname "$0")/common.sh"

share=${1:-0/1}
[[ $share =~ ^(0|[1-9][0-9]*)/([1-9][0-9]*)$ ]] && ((BASH_REMATCH[1] < BASH_REMATCH[2])) ||
  die "SHARD must be like 0/40, 1/40, … 39/40, not $share"
survivors=tests/mutants/survivors.txt
version=27.1.0
tools="$root/target/tools"
out="$root/target/mutants"
unset RUST_BACKTRACE
# Fewer tries of each property, and no search for the smallest counterexample.
export PROPTEST_CASES=${PROPTEST_CASES:-200} PROPTEST_MAX_SHRINK_ITERS=0
# A little optimisation makes the tests six times as fast, and compiling a mutant hardly slower.
export CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_OPT_LEVEL=1

# The tests that need no server. As arguments of cargo they hold for the unchanged kernel too.
tests=(--package=graph_kernel_tests --lib --test=golden --test=property --test=trust_forgery)
# Without those that take long to look at what others look at too.
skipped=(a_hundred_runs_give_the_same_bytes no_byte_of explanations_of_the_hard_graph do_not_depend_on_how_it_is_read)

mutants() { PATH="$tools/bin:$PATH" cargo mutants --package graph_kernel_core "$@"; }
# The names of mutants, without where they stand.
names() { sed -E 's/^([^:]+):[0-9]+:[0-9]+: /\1: /' "$@" | sort; }
listed() { sed -E '/^(#|$)/d; s/  # .*//' "$survivors" | sort; }
count() { wc -l <"$out/mutants.out/$1.txt"; }

mkdir -p "$out"
[[ $(mutants --version 2>/dev/null) == "cargo-mutants $version" ]] ||
  CARGO_PROFILE_DEV_OPT_LEVEL=0 cargo install cargo-mutants --version "=$version" --locked --debug \
    --quiet --root "$tools"

mutants --list >"$out/all.txt"
unknown=$(comm -23 <(listed) <(names "$out/all.txt"))
[[ -z $unknown ]] || die "$survivors lists what is not a mutant:"$'\n'"$unknown"

status=0
mutants --shard "$share" --sharding round-robin --shuffle --timeout-multiplier 3 \
  --output "$out" "${tests[@]/#/--cargo-arg=}" -- -- "${skipped[@]/#/--skip=}" || status=$?
# 2 and 3 are mutants that were missed, or took too long.
((status == 0 || status == 2 || status == 3)) || die "cargo mutants ended with status $status"

caught=$(count caught) missed=$(count missed) timeouts=$(count timeout) unviable=$(count unviable)
# The tests of a mutant that never ends do not pass either.
viable=$((caught + missed + timeouts))
((viable > 0)) || die 'no mutant can be compiled'
unexplained=$(comm -23 <(names "$out/mutants.out/missed.txt") <(listed))
note "mutants: $((viable + unviable)) of $(wc -l <"$out/all.txt"), share $share"
note "caught $caught, missed $missed, unviable $unviable, timeout $timeouts:" \
  "$(awk -v of="$viable" -v n="$((caught + timeouts))" 'BEGIN { printf "%.1f", 100 * n / of }') % of the viable ones"
[[ -z $unexplained ]] || die "not caught, and not in $survivors:"$'\n'"$unexplained"
((100 * (caught + timeouts) >= 95 * viable)) || die 'fewer than 95 %'

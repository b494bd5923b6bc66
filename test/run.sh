#!/bin/sh
# Runs every check and every suite, and counts them: `npm test`. Installs what is missing first.
#
#   ROUNDS   how often random tests repeat (default 20)
#   SEED     the order of the tests and their random inputs; printed, so that a run can be repeated
#   WIDTH    how many files of a suite are tested at the same time (default: the cores and one)
#
# Always holds: a suite that ran no test fails; a failed build stops before the suites that need the
# binaries, which would otherwise test the old ones; the last line is `N passed, N failed`.
# Most tests wait more than they compute, so files of a suite run side by side. Those that measure
# the machine come at the end, one by one. SEED decides the order within a file.

# Debian package of each program that tests use.
NEEDED="cron:cron sqlite3:sqlite3 python3:python3 strace:strace ps:procps unshare:util-linux
  script:bsdutils bash:bash git:git tar:tar flock:util-linux shellcheck:shellcheck
  chromium:chromium curl:curl"

SUITES="unit property contract house fault e2e"

# They begin first, the longest before the others, so that nobody waits for one of them at the end.
LONGEST="e2e/jobs-pipeline e2e/cron e2e/killed e2e/tree-hopper e2e/exclusion e2e/waiting
  e2e/tree-escapes e2e/journal e2e/heartbeat e2e/output e2e/output-readers e2e/nested
  e2e/limits-of-the-caller e2e/incident-b-retry e2e/outbox e2e/outbox-many fault/outbox-killed
  fault/points fault/lease-points-release fault/lease-points-beat property/survivors contract/bury
  house/release-binary"

# They compare spans, or shares of a core, or need all of it: nothing else runs meanwhile.
ALONE="contract/journal contract/freeze e2e/idle e2e/limits-clock e2e/short-runs
  e2e/circuit-many-starts e2e/circuit-many-runs e2e/report-speed"

find_missing() {
  for pair in $NEEDED; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || echo "$pair"
  done
}

install_packages() {
  missing=$(find_missing)
  [ -n "$missing" ] || return 0
  packages=$(printf '%s\n' "$missing" | cut -d : -f 2 | sort -u | tr '\n' ' ')
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing Debian packages that tests need: $packages"
    apt-get update -q >&2
    # shellcheck disable=SC2086 # one word a package
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages >&2
  fi
  for pair in $(find_missing); do
    echo "note: tests that need ${pair%%:*} (package ${pair##*:}) will not run"
  done
}

# A small, known environment: no variable of the caller changes what is tested or hides a line.
in_test_environment() {
  env -i PATH="$PATH" HOME="$HOME" LANG=C.UTF-8 TERM="${TERM:-dumb}" TMPDIR="$TMPDIR" \
    ROUNDS="$ROUNDS" SEED="$SEED" "$@"
}

# count PASSED FAILED SKIPPED NAME
count() {
  passed=$((passed + $1))
  failed=$((failed + $2))
  summary="$summary$(printf '%-10s %5d passed %5d failed %5d skipped' "$4" "$1" "$2" "$3")
"
}

# check NAME COMMAND...: one named line of the totals.
check() {
  name=$1
  shift
  echo "== $name"
  if in_test_environment "$@"; then count 1 0 0 "$name"; else count 0 1 0 "$name"; fi
}

# number_of WORD: the number before WORD in the closing block of the last suite, else 0.
number_of() {
  found=$(sed -n "s/^ *\([0-9][0-9]*\) $1\$/\1/p" "$scratch/output" | tail -n 1)
  echo "${found:-0}"
}

# in_json: the order of LONGEST, as `bun test --timings` reads it.
in_json() {
  ms=100000
  printf '{"version": 1, "files": {'
  for file in $LONGEST; do
    printf '"test/%s.test.ts": %d, ' "$file" "$ms"
    ms=$((ms - 1))
  done
  printf '"": 0}}\n'
}

# keep_failures: what the last suite printed before each of its failed tests, without the others.
keep_failures() {
  [ "$suite_failed" -gt 0 ] || return 0
  echo "== failed in test/$suite"
  sed '/^[0-9]* tests\{0,1\} failed:$/,$d' "$scratch/output" | grep -B 24 '^(fail)' |
    grep -v -e '^(pass)' -e '^(skip)' -e '^$'
  # A suite that broke off has said so in its last words alone.
  grep -q '^(fail)' "$scratch/output" || tail -n 24 "$scratch/output"
}

# run_suite NAME WIDTH PATH...
run_suite() {
  suite=$1
  width=$2
  shift 2
  echo "== test/$suite"
  {
    in_test_environment "$bun" test --parallel="$width" --timings="$scratch/timings.json" \
      --randomize --seed="$SEED" --timeout "$((180000 + ROUNDS * 1000))" "$@" 2>&1
    echo $? >"$scratch/status"
  } | tee "$scratch/output"
  suite_passed=$(number_of pass)
  suite_failed=$(number_of fail)
  # A crash between tests, or no test at all, shows in the status alone.
  if [ "$(cat "$scratch/status")" -ne 0 ] && [ "$suite_failed" -eq 0 ]; then suite_failed=1; fi
  if [ "$suite_passed" -eq 0 ] && [ "$suite_failed" -eq 0 ]; then suite_failed=1; fi
  keep_failures >>"$scratch/failures"
  count "$suite_passed" "$suite_failed" "$(number_of skip)" "$suite"
}

run_suites() {
  in_json >"$scratch/timings.json"
  # shellcheck disable=SC2046,SC2086 # one word a file
  set -- $(printf -- '--path-ignore-patterns=**/%s.test.ts ' $ALONE)
  for suite_name in $SUITES; do
    run_suite "$suite_name" "$WIDTH" "$@" "./test/$suite_name/"
  done
  # shellcheck disable=SC2046,SC2086
  run_suite alone 1 $(printf './test/%s.test.ts ' $ALONE)
}

finish() {
  echo
  # Once more, where a reader of the end alone finds them.
  [ ! -s "$scratch/failures" ] || cat "$scratch/failures"
  printf '%s' "$summary"
  echo "ROUNDS=$ROUNDS SEED=$SEED"
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
  exit
}

main() {
  cd "$(dirname "$0")/.." || exit 1
  PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
  HOME=${HOME:-/}
  TMPDIR=${TMPDIR:-/tmp}
  ROUNDS=${ROUNDS:-20}
  SEED=${SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
  WIDTH=${WIDTH:-$(($(nproc) + 1))}
  echo "ROUNDS=$ROUNDS SEED=$SEED"
  passed=0 failed=0 summary=''
  scratch=$(mktemp -d) || exit 1
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 130' HUP INT TERM
  install_packages
  bun=$(sh test/support/toolchain.sh) || exit 1

  check build "$bun" build.ts
  is_built=$passed
  check types "$bun" check --no-script
  check format "$bun" fmt --no-script --check src test build.ts
  check lint "$bun" node_modules/.bin/oxlint --deny-warnings src test build.ts
  if command -v shellcheck >/dev/null 2>&1; then
    check shell shellcheck -s sh install.sh test/run.sh test/support/toolchain.sh
  fi
  [ "$is_built" -eq 1 ] || finish
  run_suites
  finish
}

main "$@"

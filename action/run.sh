#!/usr/bin/env bash
# Runs a suite, puts its report into the job's summary, and ends as the run ended: 0 valid and
# every condition held, 1 not, 2 wrong command, 3 target unusable.
set -u
bundle="${RUNNER_TEMP:-${TMPDIR:-/tmp}}/plimsoll-${GITHUB_RUN_ID:-$$}-${GITHUB_ACTION:-run}"
arguments=(run "$PLIMSOLL_SUITE" "$PLIMSOLL_TARGET" --out "$bundle" --progress none)
arguments+=(--junit "$bundle.junit.xml")
while IFS= read -r line; do
  [ -n "$line" ] && arguments+=(--fail-if "$line")
done <<<"${PLIMSOLL_FAIL_IF:-}"
while IFS= read -r line; do
  [ -n "$line" ] && arguments+=("$line")
done <<<"${PLIMSOLL_FLAGS:-}"
"${PLIMSOLL_PROGRAM:-plimsoll}" "${arguments[@]}"
code=$?
echo "bundle=$bundle" >>"${GITHUB_OUTPUT:-/dev/null}"
if [ -f "$bundle/result.json" ]; then
  summary="$bundle.md"
  "${PLIMSOLL_PROGRAM:-plimsoll}" report "$bundle" --md "$summary" >/dev/null &&
    cat "$summary" >>"${GITHUB_STEP_SUMMARY:-/dev/stdout}"
fi
exit "$code"

#!/bin/sh
# Apply the set, run a benchmark, and revert if the benchmark fails or is interrupted.
#
# Usage: deploy.sh PYTHON BENCHMARK...
#
# PYTHON is the interpreter that the server runs with. BENCHMARK must fail (exit code other than 0)
# where the result is not good enough. Set GATEPATCH_ASSUME=sm_120 where no device can be asked.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: deploy.sh PYTHON BENCHMARK..." >&2
    exit 2
fi
python=$1
shift

gatepatch apply sm120-allreduce --python "$python" \
    ${GATEPATCH_ASSUME:+--assume "$GATEPATCH_ASSUME"}

revert() {
    trap - EXIT INT TERM
    echo "$1; reverting" >&2
    # Its exit code says whether all is put back: 4 asks for `gatepatch recover`.
    gatepatch revert sm120-allreduce --python "$python" || exit
    exit 1
}
# A shell acts on a signal once the benchmark has ended.
trap 'revert "interrupted"' INT TERM

"$@" || revert "the benchmark failed with exit code $?"
trap - INT TERM
gatepatch status sm120-allreduce --python "$python" --require

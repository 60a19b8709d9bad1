#!/bin/sh
# Compares Tenure in this working tree with Tenure at another revision, with this
# tree's benchmarks over both.
#
#   benchmarks/compare-branches.sh BASE [REGEXP [COUNT]]
#
#   BASE    a revision, such as main or HEAD~3
#   REGEXP  the benchmarks to run, by name with _ for spaces; all by default
#   COUNT   how often each runs, 8 by default; benchstat wants at least 6
#
# BENCHTIME says how long one runs, 200ms by default. The revision is checked out
# in a temporary directory, which goes away at the end. A base from before an
# exported name that the benchmarks use does not compile, and cannot be compared.
set -eu

usage() {
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 2
}
[ $# -ge 1 ] && [ $# -le 3 ] || usage
base=$1 regexp=${2:-.} count=${3:-8}

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
revision=$(git -C "$root" rev-parse --verify --quiet "$base^{commit}") || {
	echo "compare-branches: no revision $base" >&2
	exit 2
}

temp=$(mktemp -d)
cleanup() {
	git -C "$root" worktree remove --force "$temp/base" 2>/dev/null || true
	rm -rf "$temp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

git -C "$root" worktree add --quiet --detach "$temp/base" "$revision"
rm -rf "$temp/base/benchmarks"
cp -R "$here" "$temp/base/benchmarks"

(cd "$here" && go test -c -o "$temp/new.test" .)
(cd "$temp/base/benchmarks" && go test -c -o "$temp/old.test" .)

# The two take turns, so that what the machine does meanwhile hits both.
i=0
while [ "$i" -lt "$count" ]; do
	i=$((i + 1))
	echo "run $i of $count" >&2
	for side in old new; do
		"$temp/$side.test" -test.run '^$' -test.bench "^Benchmark\$/($regexp)/^tenure\$" \
			-test.benchtime "${BENCHTIME:-200ms}" >>"$temp/$side.txt"
	done
done

# Not a tool of the module: its dependencies would become everybody's here.
cd "$temp"
go run golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da base=old.txt here=new.txt

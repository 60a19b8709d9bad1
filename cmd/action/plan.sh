#!/usr/bin/env bash
# Runs tenure plan, and writes what it printed as Markdown into the job's summary and into a file for the comment.
set -euo pipefail

read -r -d '' -a files <<<"$FILES" || true
read -r -d '' -a args <<<"$ARGS" || true
if [ "${#files[@]}" -eq 0 ]; then
	echo "::error::files: expected files or folders with manifests"
	exit 1
fi
flags=()
for file in "${files[@]}"; do
	flags+=(-f "$file")
done

# A pull request may add links to files of the runner.
export TENURE_ROOT=${GITHUB_WORKSPACE:-$PWD}
output=$RUNNER_TEMP/tenure-plan.txt
status=0
"${COMMAND:-tenure}" plan "${flags[@]}" --field-manager "$FIELD_MANAGER" ${args[@]+"${args[@]}"} >"$output" 2>&1 || status=$?
# The output contains text from objects: the runner must not take a line of it as a workflow command.
stop=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
echo "::stop-commands::$stop"
cat "$output"
echo
echo "::$stop::"
echo "status=$status" >>"$GITHUB_OUTPUT"

case $status in
0) title="Nothing would change" ;;
1)
	title="Objects or their owners would change"
	case $(grep -a '^drift: [0-9]' "$output" | tail -n 1 || true) in
	*"; nothing would change") title="Drift: nothing would change, but the cluster has fields that no manifest has" ;;
	?*) title+=", and there is drift" ;;
	esac
	;;
2) title="Conflicts with other managers" ;;
4) title="The plan is incomplete" ;;
*) title="The plan failed" ;;
esac

# A comment has at most 65,536 characters. The output may contain backticks: the fence is one longer than the longest
# run of them. If that run is longer than in any real plan, quotes replace the backticks of the output.
limit=60000 most=1000 replaced=
longest=$({ grep -ao '`*' "$output" || true; } | awk '{ if (length > n) n = length } END { print n + 0 }')
if [ "$longest" -gt "$most" ]; then
	longest=0 replaced='`'
fi
fence=$(printf '%*s' "$((longest > 2 ? longest + 1 : 3))" '' | tr ' ' '`')
{
	echo "### tenure plan: $title"
	echo
	echo "$fence"
	# iconv -c omits incomplete and invalid characters. It fails if there are any, although -c is set.
	head -c "$limit" "$output" | tr -- "${replaced:-\\0}" "'" | { iconv -c -f UTF-8 -t UTF-8 2>/dev/null || true; }
	if [ "$(wc -c <"$output")" -gt "$limit" ]; then
		echo
		echo "… and more: see the log of the job"
	fi
	echo
	echo "$fence"
} >"$RUNNER_TEMP/tenure-plan.md"
cat "$RUNNER_TEMP/tenure-plan.md" >>"$GITHUB_STEP_SUMMARY"

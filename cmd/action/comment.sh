#!/usr/bin/env bash
# Writes the plan into one comment on the pull request, the same one for each run of a field manager.
set -euo pipefail

mark="<!-- tenure plan: ${FIELD_MANAGER//[^0-9A-Za-z._-]/-} -->"
body=$RUNNER_TEMP/tenure-comment.md
{
	echo "$mark"
	cat "$RUNNER_TEMP/tenure-plan.md"
} >"$body"
comments=repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments
found=$(MARK=$mark gh api --paginate "$comments" --jq '.[] | select(.body | startswith(env.MARK)) | .id' | head -n 1)
if [ -n "$found" ]; then
	gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$found" --field "body=@$body" >/dev/null
else
	gh api --method POST "$comments" --field "body=@$body" >/dev/null
fi

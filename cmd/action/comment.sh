#!/usr/bin/env bash
# Writes the plan into a comment on the pull request. Each field manager has one comment, which its later runs replace.
# Comments of other authors do not change, even if they begin with the same mark.
set -euo pipefail

mark="<!-- tenure plan: ${FIELD_MANAGER//[^0-9A-Za-z._-]/-} -->"
body=$RUNNER_TEMP/tenure-comment.md
{
	echo "$mark"
	cat "$RUNNER_TEMP/tenure-plan.md"
} >"$body"
comments=repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments
own='.data.repository.pullRequest.comments.nodes[]'
own+=' | select(.viewerDidAuthor and (.body | startswith(env.MARK))) | .databaseId'
asked='comments(first: 100, after: $endCursor) { nodes { databaseId body viewerDidAuthor } pageInfo { hasNextPage endCursor } }'
query="query(\$owner: String!, \$name: String!, \$number: Int!, \$endCursor: String) {"
query+=" repository(owner: \$owner, name: \$name) { pullRequest(number: \$number) { $asked } } }"
found=$(MARK=$mark gh api graphql --paginate --raw-field "query=$query" --raw-field "owner=${GITHUB_REPOSITORY%%/*}" \
	--raw-field "name=${GITHUB_REPOSITORY#*/}" --field "number=$PULL_REQUEST" \
	--jq "$own" | awk 'NR == 1')
if [ -n "$found" ]; then
	gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$found" --field "body=@$body" >/dev/null
else
	gh api --method POST "$comments" --field "body=@$body" >/dev/null
fi

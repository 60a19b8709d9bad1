#!/bin/sh
# Writes builtin.zip: the OpenAPI v3 document of each group version of a server, without paths and descriptions, which
# are most of it, and index.json, which has the kinds that each document describes:
#
#	{"apis/apps/v1": {"apps/v1": ["Deployment", ...]}, ...}
#
# A kind that several documents describe, such as Status, is taken from the document of its own group version, or else
# from the first. Equal documents give equal bytes. The arguments are kubectl and how it finds the server:
#
#	typed/openapi/builtin.sh kubectl --server https://127.0.0.1:6443 --token TOKEN --certificate-authority FILE
set -eu
to=$(cd "$(dirname "$0")" && pwd)/builtin.zip
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# Only schemas have descriptions to drop: a property or a field of a default may have that name.
minify='
def bare:
  if type != "object" then . else
    del(.description)
    | if has("properties") then .properties |= map_values(bare) else . end
    | reduce ("additionalProperties", "items", "not") as $k (.; if has($k) then .[$k] |= bare else . end)
    | reduce ("allOf", "anyOf", "oneOf") as $k (.; if has($k) then .[$k] |= map(bare) else . end)
  end;
{openapi, info, components: {schemas: (.components.schemas | map_values(bare))}}'
index='
[inputs | (input_filename | rtrimstr(".json")) as $document
  | .components.schemas[] | .["x-kubernetes-group-version-kind"][]?
  | {$document, kind, gv: (if .group == "" then .version else .group + "/" + .version end)}]
| group_by([.gv, .kind])
| map(sort_by(.document) | map(select((.document | sub("^apis?/"; "")) == .gv)) + . | first)
| reduce .[] as $k ({}; .[$k.document][$k.gv] += [$k.kind])'

raw=$dir/raw # a pipe would hide that kubectl failed
"$@" get --raw /openapi/v3 >"$raw"
documents=$(jq -r '.paths | keys[] | select(test("^(api|apis/[^/]+)/v[^/]+$"))' "$raw")
for document in $documents; do
	mkdir -p "$dir/$(dirname "$document")"
	"$@" get --raw "/openapi/v3/$document" >"$raw"
	jq -cj "$minify" "$raw" >"$dir/$document.json"
done
cd "$dir"
jq -nS --indent 1 "$index" $(find api apis -name '*.json' | sort) >index.json
rm -f "$to"
find . -type f -exec touch -d 1980-01-01T00:00:00Z {} +
find api apis index.json -type f | LC_ALL=C sort | TZ=UTC zip -q -X -9 "$to" -@

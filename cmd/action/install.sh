#!/usr/bin/env bash
# Downloads the command of a release, and puts it into PATH. Checks the signature of the list of checksums, which the
# release workflow has signed, and the checksum of the command's archive.
set -euo pipefail

if ! [[ $VERSION =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
	printf '::error::version: expected a release as in v0.1.0, got %q\n' "$VERSION"
	exit 1
fi
case "$RUNNER_OS" in
Linux) os=linux kind=tar.gz ;;
macOS) os=darwin kind=tar.gz ;;
Windows) os=windows kind=zip ;;
*)
	echo "::error::there is no release for $RUNNER_OS"
	exit 1
	;;
esac
case "$RUNNER_ARCH" in
X64) arch=amd64 ;;
ARM64) arch=arm64 ;;
*)
	echo "::error::there is no release for $RUNNER_ARCH"
	exit 1
	;;
esac

releases=${RELEASES:-https://github.com/tenure-ssa/tenure/releases/download}
archive=tenure_${VERSION}_${os}_${arch}.$kind
dir=$RUNNER_TEMP/tenure-$VERSION
mkdir -p "$dir"
cd "$dir"
curl --fail --silent --show-error --location --remote-name "$releases/$VERSION/$archive" \
	--remote-name "$releases/$VERSION/checksums.txt" --remote-name "$releases/$VERSION/checksums.txt.sigstore.json"
if ! cosign verify-blob --bundle checksums.txt.sigstore.json \
	--certificate-identity "https://github.com/tenure-ssa/tenure/.github/workflows/release.yml@refs/tags/$VERSION" \
	--certificate-oidc-issuer https://token.actions.githubusercontent.com checksums.txt; then
	echo "::error::checksums.txt is not signed by the release $VERSION"
	exit 1
fi
expected=$(awk -v name="$archive" '$2 == name {print $1; exit}' checksums.txt)
if command -v sha256sum >/dev/null; then
	actual=$(sha256sum <"$archive" | cut -d ' ' -f 1)
else
	actual=$(shasum -a 256 <"$archive" | cut -d ' ' -f 1)
fi
if [ -z "$expected" ] || [ "$expected" != "$actual" ]; then
	echo "::error::$archive has the checksum $actual, expected \"$expected\""
	exit 1
fi
if [ "$kind" = zip ]; then
	unzip -q -o "$archive"
else
	tar -xzf "$archive"
fi
echo "$dir" >>"$GITHUB_PATH"

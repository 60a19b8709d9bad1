package secrets

import (
	"fmt"
	"regexp"
	"strconv"
)

// decoderWords are the error texts of decoders of YAML, JSON and Kubernetes, without the text that they quote.
var decoderWords = []struct {
	pattern *regexp.Regexp
	shown   string
}{
	{regexp.MustCompile(`yaml: (?:line \d+: )?` +
		`((?:did not find|could not find|found|mapping values|block) [\w ,':<>[\]{}-]+)$`), "$1"},
	{regexp.MustCompile(`(?s)yaml: (?:line \d+: )?(unknown anchor) .*( referenced)$`), "$1 " + mark + "$2"},
	{regexp.MustCompile(`(?s)(cannot decode !!(?:str|int|float|bool|map|seq)) .* (as a !!(?:str|int|float|bool|binary))$`),
		"$1 " + mark + " $2"},
	{regexp.MustCompile(`yaml: (?:line \d+: )?(invalid map key: )`), "$1" + mark},
	{regexp.MustCompile(`line \d+: (key "[^"\n]*" already set in map)`), "$1"},
	{regexp.MustCompile(`(cannot unmarshal \w+).* (into Go (?:struct field [\w.]+|value) of type [\w.*[\]{} ]+)$`),
		"$1 $2"},
	{regexp.MustCompile(`^Object 'Kind' is missing`), "expected an object with apiVersion and kind"},
}

var decoderLine = regexp.MustCompile(
	`^(?:error converting YAML to JSON: )?yaml: (?:unmarshal errors:\n +)?line (\d+): `)

// Unreadable returns the error of a decoder without the text that it could not decode, which may be a Secret. The error
// names the line. It contains the decoder's words if they quote nothing; otherwise, it says what was expected.
func Unreadable(err error, linesBefore int, expected string) error {
	text, line, shown := err.Error(), 1, "expected "+expected
	if found := decoderLine.FindStringSubmatch(text); found != nil {
		line, _ = strconv.Atoi(found[1])
	}
	for _, words := range decoderWords {
		if found := words.pattern.FindStringSubmatchIndex(text); found != nil {
			shown = string(words.pattern.ExpandString(nil, words.shown, text, found))
			break
		}
	}
	return fmt.Errorf("line %d: %s", linesBefore+line, shown)
}

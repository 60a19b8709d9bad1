package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/secrets"
)

var (
	// ofPath matches errors of the builder about files, folders, patterns and URLs. These errors do not quote content.
	ofPath = regexp.MustCompile(`^(?:the path|error reading|the URL passed|pattern|unable to read URL) `)
	// ofContent matches errors of the builder about the content of files. Its groups are the first words, the file
	// and the rest.
	ofContent = regexp.MustCompile(`(?s)^((?:error parsing |unable to decode ")(.+?)"?: )(.*)$`)
	separator = regexp.MustCompile(`(?m)^---[ \t\r]*(?:#.*)?\n`)
)

// open returns a reader for the text of a source. For URLs, and for pipes in a folder, the reader is empty.
func (r *reader) open(source string) io.ReadCloser {
	text, ok := r.texts[source]
	if ok || isStream(source) {
		return io.NopCloser(bytes.NewReader(text))
	}
	file, err := os.Open(source)
	if err != nil {
		return io.NopCloser(bytes.NewReader(nil))
	}
	return file
}

// text returns the text of a source.
func (r *reader) text(source string) []byte {
	file := r.open(source)
	defer file.Close()
	text, _ := io.ReadAll(file)
	return text
}

const objects = "objects in YAML or JSON, with apiVersion and kind"

// reader remembers the text that was read, to add positions to errors.
type reader struct {
	env   *process.Env
	texts map[string][]byte     // texts by source
	wrong map[string][]position // undecodable documents that are not reported yet
}

// position is the position of a document in a file.
type position struct{ document, linesBefore int }

// userError returns an error of the builder with paths as the user wrote them. Quoted content is replaced by its
// position, because it may be a Secret.
func (r *reader) userError(err error) error {
	text := r.env.Relative(err.Error())
	var isPath *fs.PathError
	var isURL *url.Error
	if ofPath.MatchString(text) || errors.As(err, &isPath) || errors.As(err, &isURL) {
		return errors.New(text)
	}
	found := ofContent.FindStringSubmatch(err.Error())
	if found == nil {
		return fmt.Errorf("expected %s", objects)
	}
	prefix, source := r.env.Relative(found[1]), found[2]
	if _, isKnown := r.wrong[source]; !isKnown {
		r.wrong[source] = unreadable(r.text(source))
	}
	where := position{1, 0}
	if list := r.wrong[source]; len(list) > 0 {
		where, r.wrong[source] = list[0], list[1:]
	}
	fault := secrets.Unreadable(errors.New(found[3]), where.linesBefore, objects)
	return fmt.Errorf("%sdocument %d, %w", prefix, where.document, fault)
}

// unreadable returns the positions of the documents that can't be decoded.
func unreadable(data []byte) (found []position) {
	n := 0
	add := func(doc []byte, linesBefore int) {
		n++
		text, err := utilyaml.ToJSON(doc)
		if err == nil {
			_, _, err = unstructured.UnstructuredJSONScheme.Decode(text, nil, nil)
		}
		if err == nil { // as the builder does
			err = utiljson.Unmarshal(text, &metav1.PartialObjectMetadata{})
		}
		if err != nil {
			found = append(found, position{n, linesBefore})
		}
	}
	if !utilyaml.IsJSONBuffer(data) {
		line := 0
		for _, doc := range separator.Split(string(data), -1) {
			if strings.TrimSpace(doc) != "" {
				add([]byte(doc), line)
			}
			line += strings.Count(doc, "\n") + 1
		}
		return found
	}
	for values := json.NewDecoder(bytes.NewReader(data)); ; {
		var value json.RawMessage
		err := values.Decode(&value)
		add(value, bytes.Count(data[:values.InputOffset()], []byte("\n")))
		if err != nil {
			return found
		}
	}
}

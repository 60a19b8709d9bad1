package applications

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/planning/releases"
	"github.com/tenure-ssa/tenure/internal/secrets"
)

// readRelease reads the manifest of a Helm 3 or Helm 4 release. It reads the deployed revision or, if no revision is
// deployed, the newest one. Each revision is a Secret with labels.
func readRelease(ctx context.Context, p place.Place, ref Ref) (*Application, error) {
	selector := "owner=" + helmOwner + ",name=" + ref.Name
	s := place.Selection{Args: []string{"secrets"}, Selector: selector, Namespace: ref.Namespace}
	found, err := place.Find(ctx, p, s)
	if err != nil {
		return nil, err
	}
	var history releases.History
	revisions := map[int]*place.Target{}
	for _, t := range found {
		labels := (&unstructured.Unstructured{Object: t.Object}).GetLabels()
		if number, err := strconv.Atoi(labels["version"]); err == nil {
			revisions[number] = t
			history = append(history, releases.Revision{Revision: number, Status: labels["status"]})
		}
	}
	if len(history) == 0 {
		in := ""
		if ref.Namespace != "" {
			in = " in namespace " + ref.Namespace
		}
		return nil, fmt.Errorf("no Secret with the labels %s%s: expected a Helm release that is stored in Secrets; "+
			"releases in ConfigMaps or SQL are not read", selector, in)
	}
	slices.SortFunc(history, func(a, b releases.Revision) int { return cmp.Compare(a.Revision, b.Revision) })
	revision := cmp.Or(history.Base(), history.Last())
	t := revisions[revision]
	a := &Application{Source: fmt.Sprintf("revision %d of the Helm release %s", revision, ref.Name)}
	if err := a.readManifest(t.Stored().Object); err != nil {
		return nil, fmt.Errorf("%s: %w", t.Title(), err)
	}
	return a, nil
}

// maxRelease is the maximum size of a release's JSON. Real releases are much smaller, because their compressed JSON
// fits into a Secret.
const maxRelease = 64 << 20

// readManifest reads the objects of a release from its Secret. Its errors quote no content.
func (a *Application) readManifest(secret map[string]any) error {
	text, _, _ := unstructured.NestedString(secret, "data", "release")
	data := []byte(text)
	for range 2 { // encoded by Helm and by the API
		decoded, err := base64.StdEncoding.DecodeString(string(data))
		if err != nil {
			return errors.New(".data.release: expected base64 of base64")
		}
		data = decoded
	}
	if unzipped, err := gzip.NewReader(bytes.NewReader(data)); err == nil { // Helm 2 did not compress
		if data, err = io.ReadAll(io.LimitReader(unzipped, maxRelease)); err != nil {
			return errors.New(".data.release: expected gzip")
		}
	}
	var release struct{ Namespace, Manifest string }
	if json.Unmarshal(data, &release) != nil {
		return errors.New(".data.release: expected JSON of a release")
	}
	templates, err := releases.Parse([]byte(release.Manifest))
	if err != nil {
		return fmt.Errorf(".data.release: manifest: %w", secrets.Unreadable(err, 0, "objects"))
	}
	for _, t := range templates {
		gvk, err := document.GVKOf(t.Tree)
		if err != nil || document.NameOf(t.Tree) == "" {
			return errors.New(".data.release: manifest: expected objects with apiVersion, kind and name")
		}
		namespace := cmp.Or(document.TextAt(t.Tree, "namespace"), release.Namespace)
		a.add(place.Reference{GroupVersionKind: gvk, Namespace: namespace, Name: document.NameOf(t.Tree)})
	}
	return nil
}

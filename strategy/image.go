package strategy

import (
	"reflect"
	"regexp"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// pullPolicyOf returns the default pull policy of an image. It is Always if the tag is latest, or if the image has
// neither a tag nor a digest. It is IfNotPresent if the image has another tag or only a digest, or is not a valid
// reference.
func pullPolicyOf(image string) corev1.PullPolicy {
	if tagOf(image) == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// The grammar of image references, after normalization:
//
//	reference = domain "/" path [":" tag] ["@" digest]
//	domain    = host [":" port]
//	path      = component {"/" component}
var reference = sync.OnceValue(func() *regexp.Regexp {
	const (
		label     = `(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])`
		host      = `(?:` + label + `(?:\.` + label + `)*|\[(?:[a-fA-F0-9:]+)\])`
		component = `[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*`
		tag       = `[\w][\w.-]{0,127}`
		digest    = `[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}`
	)
	return regexp.MustCompile(`^(?:` + host + `(?::[0-9]+)?/)?(` + component + `(?:/` + component + `)*)` +
		`(?::(` + tag + `))?(?:@(` + digest + `))?$`)
})

// digestLengths are the lengths of digests, by known algorithm.
var digestLengths = map[string]int{"sha256": 64, "sha384": 96, "sha512": 128}

// tagOf returns the tag of an image. It returns latest for an image with neither a tag nor a digest, and "" for an
// image with only a digest or an invalid reference.
func tagOf(image string) string {
	domain, path := splitDomain(image)
	name, _, _ := strings.Cut(path, ":")
	if isIdentifier(image) || strings.ToLower(name) != name {
		return ""
	}
	parts := reference().FindStringSubmatch(domain + "/" + path)
	if parts == nil || len(parts[1]) > 255 || !isKnownDigest(parts[3]) {
		return ""
	}
	if parts[2] == "" && parts[3] == "" {
		return "latest"
	}
	return parts[2]
}

// splitDomain splits an image into its domain and the rest. The domain of a short name is docker.io.
func splitDomain(image string) (domain, path string) {
	domain, path, found := strings.Cut(image, "/")
	isDomain := strings.ContainsAny(domain, ".:") || domain == "localhost" || strings.ToLower(domain) != domain
	if !found || !isDomain {
		domain, path = "docker.io", image
	}
	if domain == "index.docker.io" {
		domain = "docker.io"
	}
	if domain == "docker.io" && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	return domain, path
}

// isIdentifier reports whether an image is the identifier of a local image, which is not a reference.
func isIdentifier(image string) bool {
	return len(image) == 64 && strings.Trim(image, "0123456789abcdef") == ""
}

func isKnownDigest(digest string) bool {
	if digest == "" {
		return true
	}
	algorithm, text, _ := strings.Cut(digest, ":")
	return digestLengths[algorithm] == len(text) && strings.Trim(text, "0123456789abcdef") == ""
}

var (
	resourceListType = reflect.TypeFor[corev1.ResourceList]()
	// overheadType is the Overhead of a RuntimeClass, whose ResourceList is not rounded.
	overheadType = reflect.TypeFor[nodev1.Overhead]()
)

// roundQuantities rounds the quantities of all resource lists in an object up to thousandths: 0.0005 becomes 1m.
// Kubernetes does so because early versions had no smaller unit. It does not round the Overhead of a RuntimeClass.
func roundQuantities(v reflect.Value) {
	if !holdsResourceList(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			roundQuantities(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			roundQuantities(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			roundQuantities(v.Index(i))
		}
	case reflect.Map:
		list := v.Interface().(corev1.ResourceList)
		for name, q := range list {
			if q.RoundUp(resource.Milli) {
				continue // already exact
			}
			list[name] = q
		}
	}
}

// holders caches whether a type can contain a ResourceList.
var holders sync.Map

// holdsResourceList reports whether values of a type can contain a ResourceList, in pointers, structs and slices.
func holdsResourceList(t reflect.Type) bool {
	if known, ok := holders.Load(t); ok {
		return known.(bool)
	}
	if t == overheadType {
		return false
	}
	holds := t == resourceListType
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		holders.Store(t, false) // stops the recursion of types that contain themselves
		holds = holdsResourceList(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			holds = t.Field(i).IsExported() && holdsResourceList(t.Field(i).Type) || holds
		}
	}
	holders.Store(t, holds)
	return holds
}

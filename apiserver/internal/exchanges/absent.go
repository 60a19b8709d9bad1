package exchanges

import "regexp"

// absent lists, by story and number, the items of recorded responses that this server does not
// have: groups of CustomResourceDefinitions that existed before the story, and paths of
// kube-apiserver's internals.
var absent = map[string]*regexp.Regexp{
	"discovery-health 1": regexp.MustCompile(`^/(apis/` + leftGroups +
		`(/|$)|flagz|statusz|metrics/slis|(healthz|livez|readyz)/([^p]|po))`),
	"discovery-health 3": regexp.MustCompile(`^` + leftGroups + `$`),
	"discovery-health 7": regexp.MustCompile(`^` + leftGroups + `$`),
	"discovery-health 9": regexp.MustCompile(`^(apis/` + leftGroups + `/|openid/|\.well-known/)`),
}

const leftGroups = `(gateway\.networking\.k8s\.io|monitoring\.coreos\.com|topology\.example\.dev|trace\.example\.dev)`

// without removes the absent items from a recorded response: strings, map entries by key, and
// objects by name.
func without(v any, absent *regexp.Regexp) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			if !absent.MatchString(name) {
				out[name] = without(member, absent)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, item := range v {
			if !absent.MatchString(nameOf(item)) {
				out = append(out, without(item, absent))
			}
		}
		return out
	}
	return v
}

func nameOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		if name, ok := v["name"].(string); ok {
			return name
		}
		return nameOf(v["metadata"])
	}
	return ""
}

package apiserver_test

import (
	"regexp"
)

// absent says what recorded answers list that is no part of this server's, by
// story and number: the groups of definitions that were there before the story,
// and paths that show the insides of the recorded server's process.
var absent = map[string]*regexp.Regexp{
	"discovery-health 1": regexp.MustCompile(`^/(apis/` + leftGroups + `(/|$)|flagz|statusz|metrics/slis|openid/|\.well-known/|(healthz|livez|readyz)/([^p]|po))`),
	"discovery-health 3": regexp.MustCompile(`^` + leftGroups + `$`),
	"discovery-health 7": regexp.MustCompile(`^` + leftGroups + `$`),
	"discovery-health 9": regexp.MustCompile(`^(apis/` + leftGroups + `/|openid/|\.well-known/)`),
}

const leftGroups = `(gateway\.networking\.k8s\.io|monitoring\.coreos\.com|topology\.example\.dev|trace\.example\.dev)`

// without returns a recorded answer without the items and members of lists that
// are absent here: strings, members by key, and objects by the name that they or
// their metadata have.
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

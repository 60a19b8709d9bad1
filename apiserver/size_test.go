package apiserver_test

import (
	"fmt"
	"strings"
)

// bombs are custom resources with huge defaults: 100 KB for each item of a list, and ten items
// on each level of a chain.
const bombs = "/apis/example.com/v1/namespaces/default/bombs"

func bombDefinition() string {
	chain := `{"type":"object"}`
	for range 12 {
		chain = `{"type":"object","properties":{"a":{"type":"array","default":[{},{},{},{},{},{},{},{},{},{}],"items":` +
			chain + `}}}`
	}
	return fmt.Sprintf(`{"metadata":{"name":"bombs.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"plural":"bombs","singular":"bomb","kind":"Bomb"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{
			"items":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string","default":"%s"}}}},
			"free":{"type":"object","additionalProperties":{"type":"object","properties":{"text":{"type":"string",
				"default":"%[1]s"}}}},
			"chain":%s}}}}]}}`, strings.Repeat("x", 100<<10), chain)
}

func bombOf(name, rest string) string {
	return `{"apiVersion":"example.com/v1","kind":"Bomb","metadata":{"name":"` + name + `"},` + rest + `}`
}

// emptyItems returns a list of n empty items.
func emptyItems(n int) string { return `[` + strings.Repeat("{},", n-1) + `{}]` }

// No request creates an object that exceeds the size limit, or allocates more than a few times
// that size.

package apiserver_test

import (
	"fmt"
	"strings"
)

// expansions are requests of a few bytes that ask for much more of them.
var expansions = []attack{
	{name: "4 KB of items with a default of 100 KB", why: "defaults that are filled in before they are counted",
		method: "POST", target: bombs, headers: asJSON, body: func() string {
			return bombOf("a",
				`"items":`+emptyItems(1_400))
		}, code: 413, says: "items[15].text",
		gets: "the path of the first default that does not fit"},
	{name: "800 KB of items with a default of 100 KB", why: "the same, of 27 GB", method: "POST", target: bombs,
		headers: asJSON, body: func() string { return bombOf("a", `"items":`+emptyItems(270_000)) }, code: 413,
		says: "items[15].text", gets: "the same"},
	{name: "800 KB of items with a default of 100 KB, to apply", why: "the same, through the engine", method: "PATCH",
		target: bombs + "/a?fieldManager=m", headers: "Content-Type: application/apply-patch+yaml",
		body: func() string { return bombOf("a", `"items":`+emptyItems(270_000)) }, code: 413, says: "items[15].text",
		gets: "the same"},
	{name: "a default of ten items, on each of twelve levels", why: "defaults that are filled into defaults",
		method: "POST", target: bombs, headers: asJSON, body: func() string { return bombOf("a", `"chain":{}`) }, code: 413,
		says: "chain.a[0].a[0]", gets: "the same"},
	{name: "an object of 2 MiB", why: "stores that take more than they can give back", method: "POST", headers: asJSON,
		body: func() string {
			return `{"metadata":{"name":"large"},"data":{"k":"` + strings.Repeat("x", 2<<20) + `"}}`
		}, code: 422, says: "Too long",
		gets: "the path of the largest part, as for all objects of more than 1.5 MiB"},
	{name: "a strategic merge patch that reverses 10,000 entries", why: "a merge that looks for each item from the start",
		method: "PATCH", target: "/api/v1/namespaces/default/pods/long", headers: "Content-Type: " + strategicPatch,
		body: func() string { return reversal(10_000) }, code: 413, says: "1000 items"},
	{name: "a strategic merge patch that adds 40,000 entries", why: "the same", method: "PATCH",
		target: "/api/v1/namespaces/default/pods/long", headers: "Content-Type: " + strategicPatch, body: func() string {
			entries, _ := longEnv(40_000)
			return `{"spec":{"containers":[{"name":"c","env":[` + entries + `]}]}}`
		}, code: 413, says: "1000 items", gets: "what comes of it is too large"},
	{name: "10,000 tests of a text of 500 KB in a JSON patch", why: "operations that read the whole object",
		method: "PATCH", target: objectsPath + "/text", headers: "Content-Type: " + jsonPatch, body: func() string {
			return `[` + strings.Repeat(`{"op":"test","path":"/data/b","value":"b"},`, 9_999) +
				`{"op":"test","path":"/data/a","value":""}]`
		}, code: 422, gets: "the last one fails"},
}

// hostileObjects are what requests meet, by their paths.
func hostileObjects() [][2]string {
	return [][2]string{
		{objectsPath, existing},
		{objectsPath, fmt.Sprintf(`{"metadata":{"name":"text"},"data":{"a":"%s","b":"b"}}`, strings.Repeat("x", 500<<10))},
		{"/api/v1/namespaces/default/pods", longPod(10_000)},
		{crdPath, bombDefinition()},
		{crdPath, deepDefinition},
		{deeps, deepObject(120)},
	}
}

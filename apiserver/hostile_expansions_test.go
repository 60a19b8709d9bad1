package apiserver_test

import "strings"

// expansions are requests of a few bytes that ask for much more of them.
var expansions = []attack{
	{name: "4 KB of items with a default of 100 KB", why: "defaults that are filled in before they are counted", method: "POST", target: bombs, headers: asJSON, body: func() string { return bombOf("a", `"items":`+emptyItems(1_400)) }, code: 413, says: "items[15].text", gets: "the path of the first default that does not fit; 5 ms, 0.7 MiB"},
	{name: "800 KB of items with a default of 100 KB", why: "the same, of 27 GB", method: "POST", target: bombs, headers: asJSON, body: func() string { return bombOf("a", `"items":`+emptyItems(270_000)) }, code: 413, says: "items[15].text", gets: "the same; 0.5 s, 56 MiB, most of which is the items of the body"},
	{name: "800 KB of items with a default of 100 KB, to apply", why: "the same, through the engine", method: "PATCH", target: bombs + "/a?fieldManager=m", headers: "Content-Type: application/apply-patch+yaml", body: func() string { return bombOf("a", `"items":`+emptyItems(270_000)) }, code: 413, says: "items[15].text", gets: "the same; 0.5 s, 89 MiB"},
	{name: "a default of ten items, on each of twelve levels", why: "defaults that are filled into defaults", method: "POST", target: bombs, headers: asJSON, body: func() string { return bombOf("a", `"chain":{}`) }, code: 413, says: "chain.a[0].a[0]", gets: "the same; 40 ms, 9 MiB"},
	{name: "an object of 2 MiB", why: "stores that take more than they can give back", method: "POST", headers: asJSON, body: func() string {
		return `{"metadata":{"name":"large"},"data":{"k":"` + strings.Repeat("x", 2<<20) + `"}}`
	}, code: 413, says: "data.k: the object as it is stored", gets: "the path of the largest part, as for all objects of more than 1.5 MiB; 0.1 s, 17 MiB"},
}

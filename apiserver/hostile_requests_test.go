package apiserver_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"strings"
)

// requests are attacks with one request and one response.
func requests() []attack {
	var out []attack
	for _, rows := range [][]attack{tokens, paths, queries, headers, bodies, deep, patches, expansions} {
		out = append(out, rows...)
	}
	return out
}

func text(s string) func() string { return func() string { return s } }

func times(s string, n int) func() string { return func() string { return strings.Repeat(s, n) } }

var tokens = []attack{
	{name: "no token", why: "what is open to everybody", gets: "nothing is", headers: "Authorization:", code: 401,
		says: "Unauthorized"},
	{name: "another token", why: "comparison that ends early", gets: "it takes as long whatever is right of it",
		headers: "Authorization: Bearer secres", code: 401},
	{name: "a prefix of the token", why: "comparison of a part", headers: "Authorization: Bearer secre", code: 401},
	{name: "the token as a password", why: "schemes that are taken for another", headers: "Authorization: Basic c2VjcmV0",
		code: 401},
	{name: "the token in the query", why: "tokens in logs", target: objectsPath + "?access_token=secret",
		headers: "Authorization:", code: 401},
	{name: "two tokens", why: "proxies that look at one and servers that look at the other", gets: "the first counts",
		headers: "Authorization: Bearer wrong\nAuthorization: Bearer secret", code: 401},
	{name: "a token of 50 KiB", why: "what tokens are decoded to", headers: "Authorization: Bearer " +
		strings.Repeat("eyJhbGciOiJub25lIn0.", 2500), code: 401},
	{name: "a token that is signed by nobody", why: "JSON Web Tokens with alg none",
		headers: "Authorization: Bearer eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMifQ.",
		code:    401},
	{name: "health without a token", why: "probes", gets: "who has no token learns nothing", target: "/healthz",
		headers: "Authorization:", code: 401},
}

var paths = []attack{
	{name: "dots in a path", why: "what is authorized as one thing and served as another",
		gets: "a name that is not there: paths are not cleaned", target: objectsPath + "/../secrets", code: 404},
	{name: "escaped dots", why: "the same", target: objectsPath + "/%2e%2e/%2e%2e/x", code: 404},
	{name: "dots in front of a path that is no resource", why: "the same",
		gets: "a redirection to the clean path, which is authorized for itself", target: "/healthz/../version", code: 307},
	{name: "an escaped slash", why: "names with slashes in them", gets: "the path that it stands for",
		target: objectsPath + "/a%2Fb", code: 404},
	{name: "NUL in a name", why: "keys of stores in C", target: objectsPath + "/a%00b", code: 404},
	{name: "a name that is no UTF-8", why: "keys that are not what they were", target: objectsPath + "/%ff%fe", code: 404},
	{name: "a name that is no UTF-8, to apply to", why: "the same", method: "PATCH",
		target: objectsPath + "/%ff%fe?fieldManager=m", headers: "Content-Type: application/apply-patch+yaml",
		body: text("{apiVersion: v1, kind: ConfigMap}"), code: 400},
	{name: "a name of dots, to apply to", why: "keys that lead elsewhere", method: "PATCH",
		target: objectsPath + "/..?fieldManager=m", headers: "Content-Type: application/apply-patch+yaml",
		body: text("{apiVersion: v1, kind: ConfigMap, metadata: {name: ..}}"), code: 400, says: "may not be '..'"},
	{name: "a name with a slash, to create", why: "the objects of another namespace", method: "POST",
		headers: "Content-Type: application/json", body: text(`{"metadata":{"name":"../kube-system/x"}}`), code: 422,
		says: "metadata.name"},
	{name: "a namespace with a slash, to create in", why: "the same", method: "POST",
		target: "/api/v1/namespaces/a%2Fb/configmaps", headers: "Content-Type: application/json",
		body: text(`{"metadata":{"name":"x"}}`), code: 404},
	{name: "slashes only", why: "parts that are empty", target: "/api/v1/namespaces////", code: 200,
		gets: "slashes at the end do not count: the namespaces"},
	{name: "double slashes", why: "a namespace that is empty", gets: "all namespaces, authorized as such",
		target: "/api/v1/namespaces//configmaps", code: 200},
	{name: "a path of 50 KiB", why: "errors that repeat it",
		target: objectsPath + "/" + strings.Repeat("a", 50_000), code: 404},
	{name: "a thousand parts", why: "subresources of subresources", target: "/api/v1/namespaces/default/pods/x" +
		strings.Repeat("/a", 1000), code: 404},
	{name: "a broken escape", why: "parsers that differ", target: objectsPath + "/%zz", code: 400},
	{name: "the old watch path, of nothing", why: "parts that are not there", target: "/api/v1/watch/", code: 404},
	{name: "a whole URL of another host", why: "servers that forward", gets: "it is asked for its path",
		target: "http://example.com/healthz", code: 200},
	{name: "CONNECT", why: "servers that forward", method: "CONNECT", target: "example.com:443", code: 404},
	{name: "TRACE", why: "headers that come back", method: "TRACE", code: 405},
	{name: "a method of its own", why: "methods that nobody authorizes", method: "BREW", code: 405},
	{name: "OPTIONS *", why: "a path that is none", method: "OPTIONS", target: "*", code: 200, gets: "nothing"},
}

var queries = []attack{
	{name: "a limit that is no number", why: "query values", target: objectsPath + "?limit=abc", code: 400},
	{name: "a limit below zero", why: "slices", gets: "as if there were none", target: objectsPath + "?limit=-1",
		code: 200},
	{name: "a limit beyond numbers", why: "overflow", target: objectsPath + "?limit=9223372036854775808", code: 400},
	{name: "a continue token that is none", why: "what tokens are decoded to",
		target: objectsPath + "?limit=1&continue=AAAA", code: 400},
	{name: "a continue token of another resource", why: "keys in tokens",
		gets:   "it starts where it says, among the objects of the request",
		target: objectsPath + "?limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi9zZWNyZXRzIn0",
		code:   400},
	{name: "a resourceVersion below zero", why: "revisions of stores", target: objectsPath + "?resourceVersion=-1",
		code: 400},
	{name: "a resourceVersion beyond numbers", why: "overflow",
		target: objectsPath + "?resourceVersion=99999999999999999999", code: 400},
	{name: "a resourceVersion of the far future", why: "requests that wait", gets: "at once",
		target: objectsPath + "?resourceVersion=9223372036854775807&resourceVersionMatch=NotOlderThan", code: 504,
		says: "Too large resource version"},
	{name: "a timeout below zero", why: "timers", target: objectsPath + "?timeoutSeconds=-1", code: 200},
	{name: "a timeout that is no number", why: "timers", target: objectsPath + "?watch=1&timeoutSeconds=x", code: 400},
	{name: "a broken label selector", why: "the parser", target: objectsPath + "?labelSelector=a%20in%20(", code: 400},
	{name: "10,000 requirements of labels", why: "the parser, and what each object is held against", gets: "a list",
		target: objectsPath + "?labelSelector=" + strings.Repeat("a,", 10_000) + "a", code: 200},
	{name: "an unknown field selector", why: "fields that are secret", target: objectsPath + "?fieldSelector=data.k=v",
		code: 400},
	{name: "a broken field selector", why: "the parser", target: objectsPath + "?fieldSelector=a", code: 400},
	{name: "10,000 parameters", why: "maps", gets: "a list", target: objectsPath + "?" + strings.Repeat("a&", 10_000),
		code: 200},
	{name: "a broken escape in the query", why: "parsers that differ", gets: "as if it were not there",
		target: objectsPath + "?limit=%zz", code: 200},
	{name: "a field manager of 2 KiB", why: "managed fields that grow", method: "PATCH",
		target:  objectsPath + "/there?fieldManager=" + strings.Repeat("m", 2000),
		headers: "Content-Type: application/apply-patch+yaml", body: text("{apiVersion: v1, kind: ConfigMap}"), code: 422,
		says: "fieldManager"},
	{name: "a field manager that can't be printed", why: "what is printed", method: "PATCH",
		target: objectsPath + "/there?fieldManager=%00", headers: "Content-Type: application/apply-patch+yaml",
		body: text("{apiVersion: v1, kind: ConfigMap}"), code: 422, says: "fieldManager"},
	{name: "force that is no boolean", why: "force", method: "PATCH",
		target: objectsPath + "/there?fieldManager=m&force=maybe", headers: "Content-Type: application/apply-patch+yaml",
		body: text("{apiVersion: v1, kind: ConfigMap}"), code: 200, gets: "true, as in all queries of a server"},
	{name: "another field validation", why: "strictness", method: "POST", target: objectsPath + "?fieldValidation=Bogus",
		headers: "Content-Type: application/json", body: text(existing), code: 422, says: "fieldValidation"},
	{name: "another dry run", why: "writes that were to be none", method: "POST", target: objectsPath + "?dryRun=Some",
		headers: "Content-Type: application/json", body: text(existing), code: 422, says: "dryRun"},
}

var headers = []attack{
	{name: "headers of 100 KiB", why: "memory", headers: "X-A: " + strings.Repeat("a", 100_000), code: 431},
	{name: "4,000 headers", why: "maps", gets: "a list", headers: strings.Repeat("A: b\n", 4000), code: 200},
	{name: "a content length beside chunks", why: "requests that proxies see elsewhere",
		gets: "chunks count, and the connection ends", method: "POST",
		headers: "Content-Type: application/json\nContent-Length: 5\nTransfer-Encoding: chunked", body: text("0\r\n\r\n"),
		code: 400},
	{name: "two content lengths", why: "the same", method: "POST",
		headers: "Content-Type: application/json\nContent-Length: 5\nContent-Length: 50", body: text("hello"), code: 400},
	{name: "a content length below zero", why: "the same", method: "POST", headers: "Content-Length: -1", code: 400},
	{name: "chunks in chunks", why: "the same", method: "POST", headers: "Transfer-Encoding: chunked, chunked",
		body: text("0\r\n\r\n"), code: 501},
	{name: "two hosts", why: "the same", headers: "Host: example.com", code: 400},
	{name: "a representation that there is not", why: "negotiation", headers: "Accept: text/html", code: 406},
	{name: "a shape that there is not", why: "negotiation",
		headers: "Accept: application/json;as=Chair;v=v1;g=meta.k8s.io", code: 406},
	{name: "10,000 representations", why: "each is held against each", headers: "Accept: " + strings.Repeat("a/b,",
		10_000), code: 406},
	{name: "an Accept of nothing but signs", why: "the parser", headers: "Accept: ;;,,//==;q=;q=9;,", code: 406},
	{name: "a range", why: "answers in many parts", gets: "the whole", headers: "Range: bytes=0-0,0-0,0-0,0-0", code: 200},
	{name: "a request to switch protocols", why: "connections that are handed over",
		gets: "an answer as if there were none", headers: "Connection: Upgrade\nUpgrade: websocket", code: 200},
}

const post, asJSON, asYAML = "POST", "Content-Type: application/json", "Content-Type: application/yaml"

var bodies = []attack{
	{name: "a body of 4 MiB", why: "memory", gets: "it is not read", method: post, headers: asJSON,
		body: times("a", 4<<20), code: 413, says: "limit is 3145728"},
	{name: "a body of 1 TiB, as it says", why: "memory for what is to come", gets: "it is not waited for", method: post,
		headers: asJSON + "\nContent-Length: 1099511627776", body: text("{"), code: 413},
	{name: "chunks without end", why: "memory", gets: "they are read as far as the limit", method: post,
		headers: asJSON + "\nTransfer-Encoding: chunked",
		body:    func() string { return strings.Repeat("10000\r\n"+strings.Repeat(" ", 0x10000)+"\r\n", 64) }, code: 413},
	{name: "a body that ends early", why: "what is read of it", method: post,
		headers: asJSON + "\nTransfer-Encoding: chunked", body: text("5\r\n{\"me\r\nnothing"), code: 400,
		says: "error reading the body"},
	{name: "a compressed body", why: "a kilobyte that becomes a gigabyte", gets: "it is not decompressed", method: post,
		headers: asJSON + "\nContent-Encoding: gzip", body: bomb, code: 415, says: "Content-Encoding"},
	{name: "a compressed body that does not say so", why: "the same", method: post, headers: asJSON, body: bomb,
		code: 400},
	{name: "a body of another type", why: "parsers", method: post,
		headers: "Content-Type: multipart/form-data; boundary=x", body: text(existing), code: 415},
	{name: "a broken type", why: "parsers", method: post, headers: "Content-Type: ;;;", body: text(existing), code: 415},
	{name: "no body", why: "what is not there", method: post, headers: asJSON, body: text(""), code: 400, says: "empty"},
	{name: "null", why: "objects that are nil", method: post, headers: asJSON, body: text("null"), code: 422},
	{name: "a list", why: "objects that are none", method: post, headers: asJSON, body: text("[]"), code: 400},
	{name: "a number", why: "objects that are none", method: post, headers: asJSON, body: text("0"), code: 400},
	{name: "a body that is half there", why: "parsers", method: post, headers: asJSON,
		body: text(`{"metadata":{"name":"x`), code: 400},
	{name: "two bodies", why: "parsers that stop early", method: post, headers: asJSON,
		body: text(`{"metadata":{"name":"x"}}{"metadata":{"name":"y"}}`), code: 400},
	{name: "an object of another kind", why: "types", method: post, headers: asJSON,
		body: text(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}`), code: 400},
	{name: "metadata that is a list", why: "types", method: post, headers: asJSON, body: text(`{"metadata":[]}`),
		code: 400},
	{name: "text that is no UTF-8", why: "two spellings of one string",
		gets: "what is wrong becomes U+FFFD, as in all JSON", method: post, headers: asJSON,
		body: text("{\"metadata\":{\"name\":\"utf\"},\"data\":{\"k\":\"\xff\"}}"), code: 201, says: "\ufffd"},
	{name: "50,000 members of one name", why: "an error for each",
		gets: "the last counts; warnings as far as a header may be long", method: post, headers: asJSON,
		body: func() string {
			return `{"metadata":{"name":"double"},"data":{` + strings.Repeat(`"a":"b",`, 50_000) + `"a":"b"}}`
		}, code: 201},
	{name: "50,000 undeclared members", why: "an error for each", gets: "warnings as far as a header may be long",
		method: post, headers: asJSON,
		body: func() string { return `{"metadata":{"name":"unknown"}` + numbered(`,"a%d":1`, 50_000) + `}` }, code: 201},
	{name: "50,000 undeclared members, strictly", why: "an error for each", method: post,
		target: objectsPath + "?fieldValidation=Strict", headers: asJSON,
		body: func() string { return `{"metadata":{"name":"strict"}` + numbered(`,"a%d":1`, 50_000) + `}` }, code: 400},
	{name: "200,000 annotations", why: "sizes that add up", gets: "no more than 256 KiB of them", method: post,
		headers: asJSON,
		body: func() string {
			return `{"metadata":{"name":"annotated","annotations":{"a":"b"` + numbered(`,"a%d":""`, 200_000) + `}}}`
		}, code: 422, says: "annotations"},
	{name: "managed fields of nothing", why: "what owns nothing, and is no manager", gets: "they are dropped",
		method: post, headers: asJSON,
		body: text(`{"metadata":{"name":"managed","managedFields":[{"manager":"x","operation":"Apply","apiVersion":"v1",` +
			`"fieldsType":"FieldsV1","fieldsV1":{"f:data":1}}]}}`), code: 201},
	{name: "aliases of aliases in YAML", why: "a page that becomes gigabytes", method: post, headers: asYAML,
		body: func() string {
			out := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
			for i := range 12 {
				out += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9), i)
			}
			return out + "metadata: {name: x}\n"
		}, code: 413, says: "aliases: expected at most 3145728 bytes"},
	{name: "an alias of itself in YAML", why: "values without end", method: post, headers: asYAML,
		body: text("a: &a {b: *a}\nmetadata: {name: x}\n"), code: 400},
	{name: "a protobuf that says it is long", why: "memory for what is to come", method: post,
		headers: "Content-Type: application/vnd.kubernetes.protobuf", body: text("k8s\x00\x12\xff\xff\xff\xff\x07"),
		code: 400},
	{name: "a protobuf of another kind", why: "types", method: post,
		headers: "Content-Type: application/vnd.kubernetes.protobuf", body: func() string {
			return protobuf("v1", "Secret",
				nil)
		}, code: 400},
	{name: "CBOR without end", why: "memory for what is to come", method: post, headers: "Content-Type: application/cbor",
		body: text("\xd9\xd9\xf7\xbb\x7f\xff\xff\xff\xff\xff\xff\xff"), code: 415},
	{name: "delete options that are none", why: "parsers", method: "DELETE", target: objectsPath + "/there",
		headers: asJSON, body: text(`{"preconditions":[]}`), code: 400},
	{name: "delete options of another kind", why: "types", method: "DELETE", target: objectsPath + "/there",
		headers: asJSON, body: text(`{"kind":"ConfigMap","apiVersion":"v1"}`), code: 400},
}

// bomb is a gigabyte of spaces, compressed.
func bomb() string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	block := bytes.Repeat([]byte(" "), 1<<20)
	for range 64 {
		_, _ = z.Write(block) // a Buffer takes everything
	}
	_ = z.Close()
	return b.String()
}

func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// message returns a field with a message in protobuf.
func message(field int, data []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(field)<<3|2)
	return append(binary.AppendUvarint(out, uint64(len(data))), data...)
}

func protobuf(version, kind string, raw []byte) string {
	meta := append(message(1, []byte(version)), message(2, []byte(kind))...)
	return "k8s\x00" + string(append(message(1, meta), message(2, raw)...))
}

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// nestedSchema is a definition whose schema is nested, in protobuf: spec.versions.schema.openAPIV3Schema, and then a
// "not" for each level.
func nestedSchema(depth int) string {
	var levels [][]byte
	size := 0
	for range depth {
		head := binary.AppendUvarint(binary.AppendUvarint(nil, 29<<3|2), uint64(size))
		size += len(head)
		levels = append(levels, head)
	}
	var schema []byte
	for i := len(levels) - 1; i >= 0; i-- {
		schema = append(schema, levels[i]...)
	}
	version := append(message(1, []byte("v1")), message(4, message(1, schema))...)
	return protobuf("apiextensions.k8s.io/v1", "CustomResourceDefinition", message(2, message(7, version)))
}

const tooDeep = "nested too deep: expected at most 1000 levels"

var deep = []attack{
	{name: "a million nested lists", why: "the stack", method: post, headers: asJSON, body: times("[", 1_000_000),
		code: 400, says: tooDeep},
	{name: "a million nested maps", why: "the stack", method: post, headers: asJSON, body: times(`{"":`, 700_000),
		code: 400, says: tooDeep},
	{name: "a million nested lists without a type", why: "types that are guessed", method: post,
		body: times("[", 1_000_000), code: 400, says: tooDeep},
	{name: "brackets in a text", why: "limits that count what is none", gets: "a text", method: post, headers: asJSON,
		body: func() string {
			return `{"metadata":{"name":"brackets"},"data":{"k":"\"` + strings.Repeat("[", 5000) + `"}}`
		}, code: 201},
	{name: "a million nested lists in YAML", why: "the stack", method: post, headers: asYAML, body: times("[", 1_000_000),
		code: 413, says: "indicators"},
	{name: "a million nested lists of lines in YAML", why: "the stack", method: post, headers: asYAML,
		body: times("- ", 1_000_000), code: 413, says: "indicators"},
	{name: "nested managed fields", why: "the decoder of FieldsV1", gets: "they are dropped", method: post,
		headers: asJSON, body: func() string {
			return `{"metadata":{"name":"fields","managedFields":[{"manager":"x","operation":"Apply","apiVersion":"v1",` +
				`"fieldsType":"FieldsV1","fieldsV1":` +
				strings.Repeat(`{"f:a":`, 900) + "{}" + strings.Repeat("}", 900) + `}]}}`
		}, code: 201},
	{name: "nested schemas in protobuf", why: "the stack of a decoder that knows no limit", method: post,
		target: definitionsPath, headers: "Content-Type: application/vnd.kubernetes.protobuf",
		body: func() string { return nestedSchema(400_000) }, code: 400, says: tooDeep},
	{name: "nested schemas in JSON", why: "the compiler of schemas", method: post, target: definitionsPath,
		headers: asJSON, body: func() string {
			return `{"metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Namespaced",` +
				`"names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true,` +
				`"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":` +
				strings.Repeat(`{"type":"object","properties":{"a":`, 490) + `{"type":"string"}` + strings.Repeat("}}", 490) +
				`}}}}]}}`
		}, code: 201},
	{name: "a million nested lists in CBOR", why: "the stack", method: post, headers: "Content-Type: application/cbor",
		body: times("\x81", 1_000_000), code: 415},
	{name: "a million nested lists to apply", why: "the stack", method: "PATCH",
		target: objectsPath + "/there?fieldManager=m", headers: "Content-Type: application/apply-patch+yaml",
		body: times("[", 1_000_000), code: 413, says: "indicators"},
	{name: "nested lists to apply that YAML takes", why: "the engine", gets: "an error that names the path",
		method: "PATCH", target: objectsPath + "/there?fieldManager=m", headers: "Content-Type: application/apply-patch+yaml",
		body: func() string {
			return "{apiVersion: v1, kind: ConfigMap, metadata: {name: there}, data: " + strings.Repeat("[", 5000) +
				strings.Repeat("]", 5000) + "}"
		}, code: 400},
	{name: "nested lists to create that YAML takes", why: "the decoder", method: post, headers: asYAML,
		body: func() string {
			return "{metadata: {name: yaml}, other: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}"
		}, code: 201, gets: "what is not declared is dropped"},
	{name: "nested lists in a merge patch", why: "the stack", method: "PATCH", target: objectsPath + "/there",
		headers: "Content-Type: application/merge-patch+json", body: times(`{"a":[`, 100_000), code: 400, says: tooDeep},
	{name: "nested lists in a strategic merge patch", why: "the stack", method: "PATCH", target: objectsPath + "/there",
		headers: "Content-Type: application/strategic-merge-patch+json", body: times(`{"a":[`, 100_000), code: 400,
		says: tooDeep},
	{name: "nested lists in a JSON patch", why: "the stack", method: "PATCH", target: objectsPath + "/there",
		headers: "Content-Type: application/json-patch+json", body: times(`[{"a":`, 100_000), code: 400, says: tooDeep},
	{name: "nested lists to apply in CBOR", why: "the stack", method: "PATCH",
		target: objectsPath + "/there?fieldManager=m", headers: "Content-Type: application/apply-patch+cbor",
		body: times("\x81", 1_000_000), code: 415},
	{name: "nested delete options", why: "the stack", method: "DELETE", target: objectsPath + "/there", headers: asJSON,
		body: times("[", 1_000_000), code: 400, says: tooDeep},
}

func patch(of, name, why, gets, body string, code int, says string) attack {
	return attack{name: name, why: why, gets: gets, method: "PATCH", target: objectsPath + "/there",
		headers: "Content-Type: application/" + of, body: text(body), code: code, says: says}
}

var patches = []attack{
	patch("json-patch+json", "copies of copies in a JSON patch", "a page that becomes gigabytes",
		"no more is copied than a body may have",
		`[{"op":"add","path":"/data","value":{}}`+numbered(`,{"op":"copy","from":"/data","path":"/data/x%d"}`, 60)+`]`, 422,
		""),
	{name: "100,000 operations in a JSON patch", why: "time", method: "PATCH", target: objectsPath + "/there",
		headers: "Content-Type: application/json-patch+json",
		body: func() string {
			return "[" + strings.Repeat(`{"op":"test","path":"","value":0},`, 50_000) + `{"op":"test","path":"","value":0}]`
		}, code: 413, says: "maximum operations"},
	patch("json-patch+json", "a JSON patch at an index beyond numbers", "memory for a list", "",
		`[{"op":"add","path":"/metadata/finalizers","value":[]},{"op":"add",`+
			`"path":"/metadata/finalizers/99999999999999999999","value":"a"}]`, 422, ""),
	patch("json-patch+json", "a JSON patch at a far index", "memory for a list", "",
		`[{"op":"add","path":"/metadata/finalizers","value":[]},{"op":"add","path":"/metadata/finalizers/999999999",`+
			`"value":"a"}]`, 422, ""),
	patch("json-patch+json", "a JSON patch that removes all", "objects that are nil", "", `[{"op":"remove","path":""}]`,
		422, ""),
	patch("json-patch+json", "a JSON patch that replaces all", "objects of another kind", "",
		`[{"op":"replace","path":"","value":[]}]`, 422, ""),
	patch("json-patch+json", "a JSON patch without operations", "parsers", "", `[{}]`, 422, ""),
	patch("json-patch+json", "a JSON patch of null", "values that are nil", "", `[null]`, 422, ""),
	patch("json-patch+json", "a JSON patch that is a map", "parsers", "", `{}`, 400, ""),
	patch("merge-patch+json", "a merge patch of null", "objects that are nil", "", `null`, 400, ""),
	patch("merge-patch+json", "a merge patch that is a list", "objects that are none", "", `[]`, 400, ""),
	patch("merge-patch+json", "a merge patch without metadata", "objects without a name", "", `{"metadata":null}`, 400,
		""),
	patch("merge-patch+json", "a merge patch of another name", "the objects of others", "",
		`{"metadata":{"name":"other"}}`, 400, ""),
	patch("merge-patch+json", "a merge patch of another namespace", "the objects of others", "",
		`{"metadata":{"namespace":"kube-system"}}`, 400, ""),
	patch("strategic-merge-patch+json", "a strategic merge patch of null", "objects that are nil",
		"a patch that changes nothing", `null`, 200, ""),
	patch("strategic-merge-patch+json", "a directive that there is not", "directives", "", `{"$patch":"explode"}`, 400,
		""),
	patch("strategic-merge-patch+json", "a directive that is a map", "directives", "",
		`{"metadata":{"finalizers":["a/b"],"$setElementOrder/finalizers":{}}}`, 400, ""),
	patch("strategic-merge-patch+json", "keys to retain that are none", "directives", "", `{"data":{"$retainKeys":5}}`,
		400, ""),
	patch("strategic-merge-patch+json", "to delete from a list by nothing", "directives", "nothing is deleted",
		`{"metadata":{"ownerReferences":[{"$patch":"delete"}]}}`, 200, ""),
	patch("apply-patch+yaml", "apply by nobody", "managers without a name", "", "{apiVersion: v1, kind: ConfigMap}", 422,
		"fieldManager"),
	{name: "to apply nothing", why: "intents that are nil", method: "PATCH", target: objectsPath + "/there?fieldManager=m",
		headers: "Content-Type: application/apply-patch+yaml", body: text(""), code: 400},
	{name: "to apply two documents", why: "parsers that stop early", method: "PATCH",
		target: objectsPath + "/there?fieldManager=m", headers: "Content-Type: application/apply-patch+yaml",
		body: text("{apiVersion: v1, kind: ConfigMap}\n---\n{apiVersion: v1, kind: Secret}\n"), code: 200,
		gets: "the first counts"},
	{name: "to apply managed fields", why: "ownership that is forged", method: "PATCH",
		target: objectsPath + "/there?fieldManager=m", headers: "Content-Type: application/apply-patch+yaml",
		body: text("{apiVersion: v1, kind: ConfigMap, metadata: {managedFields: []}}"), code: 400,
		says: "managedFields must be nil"},
	{name: "to apply at another version", why: "versions that are not served", method: "PATCH",
		target: objectsPath + "/there?fieldManager=m", headers: "Content-Type: application/apply-patch+yaml",
		body: text("{apiVersion: v9, kind: ConfigMap}"), code: 400},
}

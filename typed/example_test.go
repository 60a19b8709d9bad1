package typed_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// container is a topology with a list of each kind: ports is keyed by port, args is a set, command is atomic.
func container() *typed.Type {
	text, number := &typed.Type{Scalar: typed.String}, &typed.Type{Scalar: typed.Numeric}
	port := &typed.Type{Map: typed.NewMap(map[string]typed.Field{"port": {Type: number}, "name": {Type: text}}, nil)}
	list := func(l *typed.List) typed.Field { return typed.Field{Type: &typed.Type{List: l}} }
	return &typed.Type{Map: typed.NewMap(map[string]typed.Field{
		"image":   {Type: text},
		"ports":   list(typed.KeyedList(port, "port")),
		"args":    list(typed.SetList(text)),
		"command": list(typed.AtomicList(text)),
	}, nil)}
}

func decode(text string) (v any) {
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(err)
	}
	return v
}

func printSet(name string, set *fieldpath.Set) {
	fmt.Println(name, strings.ReplaceAll(set.String(), "\n", " "))
}

func encode(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// A server-side apply merges an intent into the live object. A manager drops the fields that its last intent owned and
// its new intent does not contain.
func ExampleType_Merge() {
	t := container()
	live := decode(`{"image": "a", "ports": [{"port": 80, "name": "x"}, {"port": 90}], "args": ["q"]}`)
	intent := decode(`{"image": "b", "args": ["q", "r"]}`)
	last := t.FieldSet(decode(`{"image": "a", "args": ["q"], "ports": [{"port": 80}]}`))

	merged, err := t.Merge(live, intent, typed.Rules{})
	if err != nil {
		panic(err)
	}
	changes := t.Compare(live, merged.Value)
	fmt.Println("merged  ", encode(merged.Value))
	printSet("owned   ", merged.FieldSet())
	printSet("dropped ", last.Difference(merged.FieldSet()))
	printSet("added   ", changes.Added)
	printSet("modified", changes.Modified)
	// Output:
	// merged   {"args":["q","r"],"image":"b","ports":[{"name":"x","port":80},{"port":90}]}
	// owned    .image .args[="q"] .args[="r"]
	// dropped  .ports[port=80] .ports[port=80].port
	// added    .args[="r"]
	// modified .image
}

// The merged list has the intent's order if the intent reorders items that the live object also has.
func ExampleType_Merge_order() {
	live := decode(`{"image": "a", "ports": [{"port": 80, "name": "x"}, {"port": 90}], "args": ["q"]}`)
	intent := decode(`{"image": "b", "ports": [{"port": 90}, {"port": 80}]}`)
	merged, err := container().Merge(live, intent, typed.Rules{})
	fmt.Println(encode(merged.Value), err)
	// Output:
	// {"args":["q"],"image":"b","ports":[{"port":90},{"name":"x","port":80}]} <nil>
}

func ExampleType_Compare() {
	old := decode(`{"image": "a", "ports": [{"port": 80, "name": "x"}, {"port": 90}]}`)
	updated := decode(`{"image": "b", "ports": [{"port": 90}, {"port": 91}]}`)
	c := container().Compare(old, updated)
	printSet("added   ", c.Added)
	printSet("modified", c.Modified)
	printSet("removed ", c.Removed)
	// Output:
	// added    .ports[port=91] .ports[port=91].port
	// modified .image
	// removed  .ports[port=80] .ports[port=80].name .ports[port=80].port
}

func ExampleType_Remove() {
	v := decode(`{"image": "a", "ports": [{"port": 80}]}`)
	set := fieldpath.NewSet(
		fieldpath.NewPath("image"),
		fieldpath.Path{fieldpath.FieldElement("ports"), fieldpath.KeyElement(fieldpath.KeyField{Name: "port", Value: 80})},
	)
	fmt.Println(encode(container().Remove(v, set)), encode(container().RemoveToNull(v, set)))
	// Output:
	// {"ports":[]} {"ports":null}
}

// Validate reports all violations of a type, sorted by path.
func ExampleType_Validate() {
	fmt.Println(container().Validate(decode(`{"image": 1, "port": 80}`), typed.Rules{}))
	// Output:
	// 2 errors:
	//   .image: expected string, got 1
	//   .port: field not declared in schema
}

package fieldmanager_test

import "github.com/tenure-ssa/tenure/internal/writetest"

// Objects, types and managers of the tests.
var (
	parse          = writetest.Parse
	object         = writetest.Object
	thingTypes     = writetest.ThingTypes
	thingKind      = writetest.ThingKind
	start          = writetest.Start
	newManager     = writetest.NewManager
	stored         = writetest.Stored
	widgetKind     = writetest.WidgetKind
	structOf       = writetest.StructOf
	objectType     = writetest.ObjectType
	widgetManager  = writetest.WidgetManager
	newWidget      = writetest.NewWidget
	asTree         = writetest.AsTree
	asTreeWith     = writetest.AsTreeWith
	builtinManager = writetest.BuiltinManager
	contents       = writetest.Contents
	changing       = writetest.Changing
	anyKind        = writetest.AnyKind
	anyAt          = writetest.AnyAt
	anyManager     = writetest.AnyManager
	atVersion      = writetest.AtVersion
)

type (
	widget     = writetest.Widget
	widgetSpec = writetest.WidgetSpec
	widgetPort = writetest.WidgetPort
	counted    = writetest.Counted
	convert    = writetest.Convert
	anyType    = writetest.AnyType
)

func ptr[T any](v T) *T { return &v }

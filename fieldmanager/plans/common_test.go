package plans_test

import "github.com/tenure-ssa/tenure/internal/writetest"

// Objects, types and managers of the tests.
var (
	parse          = writetest.Parse
	object         = writetest.Object
	start          = writetest.Start
	newManager     = writetest.NewManager
	stored         = writetest.Stored
	widgetManager  = writetest.WidgetManager
	newWidget      = writetest.NewWidget
	asTreeWith     = writetest.AsTreeWith
	builtinManager = writetest.BuiltinManager
	contents       = writetest.Contents
	changing       = writetest.Changing
	anyAt          = writetest.AnyAt
	anyManager     = writetest.AnyManager
	atVersion      = writetest.AtVersion
)

type (
	widget     = writetest.Widget
	widgetSpec = writetest.WidgetSpec
	counted    = writetest.Counted
)

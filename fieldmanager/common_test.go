package fieldmanager_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
)

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

// warningsTo is an option that collects warnings in a list.
func warningsTo(list *[]fieldmanager.Warning) func(*fieldmanager.Options) {
	return func(o *fieldmanager.Options) {
		o.Warnings = func(w fieldmanager.Warning) { *list = append(*list, w) }
	}
}

// requireRole requires that an error is about the object with the given role.
func requireRole(t testing.TB, role fieldmanager.Role, err error) {
	t.Helper()
	var objectErr *fieldmanager.ObjectError
	require.ErrorAs(t, err, &objectErr)
	require.Equal(t, role, objectErr.Role)
}

package custom

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	schemaobjectmeta "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// coerce brings what a client sent into the shape of the schema: fields that are
// not declared are dropped, and returned as paths; metadata gets its Go types. A
// field whose type is wrong there is an error.
func (k *kind) coerce(u *unstructured.Unstructured, paths bool) ([]string, error) {
	meta, found, unknown, err := schemaobjectmeta.GetObjectMetaWithOptions(u.Object,
		schemaobjectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: paths})
	if err != nil {
		return nil, err
	}
	if !k.definition.crd.Spec.PreserveUnknownFields {
		unknown = append(unknown, pruning.PruneWithOptions(u.Object, k.schema, true,
			structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: paths})...)
		defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, k.schema)
	}
	fieldErr, more := schemaobjectmeta.CoerceWithOptions(nil, u.Object, k.schema, false,
		schemaobjectmeta.CoerceOptions{ReturnUnknownFieldPaths: paths})
	if fieldErr != nil {
		return nil, fieldErr
	}
	if found {
		if err := schemaobjectmeta.SetObjectMeta(u.Object, meta); err != nil {
			return nil, err
		}
	}
	return append(unknown, more...), nil
}

// coerceStored is coerce for what was stored under another schema: metadata that
// does not fit is dropped, so that the object can still be read.
func coerceStored(u *unstructured.Unstructured, s *structuralschema.Structural, preserve bool) error {
	meta, found, _, err := schemaobjectmeta.GetObjectMetaWithOptions(u.Object,
		schemaobjectmeta.ObjectMetaOptions{DropMalformedFields: true})
	if err != nil {
		return err
	}
	if err := prune(u, s, preserve); err != nil {
		return err
	}
	if found {
		meta.Generation = max(meta.Generation, 1)
		return schemaobjectmeta.SetObjectMeta(u.Object, meta)
	}
	return nil
}

// prune drops what a schema does not declare.
func prune(u *unstructured.Unstructured, s *structuralschema.Structural, preserve bool) error {
	if !preserve {
		pruning.PruneWithOptions(u.Object, s, true, structuralschema.UnknownFieldPathOptions{})
		defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, s)
	}
	if err, _ := schemaobjectmeta.CoerceWithOptions(nil, u.Object, s, false,
		schemaobjectmeta.CoerceOptions{DropInvalidFields: true}); err != nil {
		return err
	}
	return nil
}

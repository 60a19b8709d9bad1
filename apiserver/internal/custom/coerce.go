package custom

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	schemaobjectmeta "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// coerce prunes fields that the schema does not declare and coerces metadata to its Go types.
// It returns the paths of the pruned fields. A metadata field of the wrong type is an error.
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

// coerceStored is coerce for stored objects. It drops metadata fields of the wrong type, so
// that objects stored under another schema can be read.
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

// prune prunes fields that the schema does not declare.
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

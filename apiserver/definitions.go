package apiserver

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Define serves the custom resources of a definition that is not in the store, and not
// stored now, in place of a stored definition of the same name. types, if not nil, are the
// types of its kind, in place of those of its schemas. The error says what is wrong with the
// definition.
func (s *Server) Define(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition,
	types *openapi.Registry) error {
	return s.definitions.Add(ctx, crd, types)
}

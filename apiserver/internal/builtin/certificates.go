package builtin

import (
	"context"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// setRequester sets the spec fields of a CertificateSigningRequest that identify the
// requester. The client's values are ignored: approvers rely on these fields.
func setRequester(ctx context.Context, s *certificatesv1.CertificateSigningRequestSpec) {
	s.Username, s.UID, s.Groups, s.Extra = "", "", nil, nil
	user, ok := apirequest.UserFrom(ctx)
	if !ok {
		return
	}
	s.Username, s.UID, s.Groups = user.GetName(), user.GetUID(), slices.Clone(user.GetGroups())
	for name, values := range user.GetExtra() {
		if s.Extra == nil {
			s.Extra = map[string]certificatesv1.ExtraValue{}
		}
		s.Extra[name] = slices.Clone(values)
	}
}

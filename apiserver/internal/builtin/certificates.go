package builtin

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/tenure-ssa/tenure/apiserver/auth"
)

// setRequester sets the spec fields of a CertificateSigningRequest that identify the
// requester. The client's values are ignored: approvers rely on these fields.
func setRequester(s *certificatesv1.CertificateSigningRequestSpec, user auth.User) {
	s.Username, s.UID, s.Groups, s.Extra = user.Name, user.UID, slices.Clone(user.Groups), nil
	for name, values := range user.Extra {
		if s.Extra == nil {
			s.Extra = map[string]certificatesv1.ExtraValue{}
		}
		s.Extra[name] = slices.Clone(values)
	}
}

package apiserver

import "k8s.io/apiserver/pkg/audit"

// Audit records requests as kube-apiserver does, in events of audit.k8s.io. The zero Audit records nothing.
type Audit struct {
	// Policy decides what is recorded of a request. That of a policy file is
	// policy.NewPolicyRuleEvaluator of k8s.io/apiserver/pkg/audit/policy.
	Policy audit.PolicyRuleEvaluator
	// Sink gets the events, several at a time if requests end at the same time. A log is NewBackend of
	// k8s.io/apiserver/plugin/pkg/audit/log.
	Sink audit.Sink
}

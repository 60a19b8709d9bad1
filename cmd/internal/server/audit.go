package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit/policy"
	auditlog "k8s.io/apiserver/plugin/pkg/audit/log"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// writesOnly is the policy without a policy file: all writes, with their bodies. Those of Secrets and what
// leads to tokens are left out.
var writesOnly = &auditinternal.Policy{
	OmitStages: []auditinternal.Stage{auditinternal.StageRequestReceived},
	Rules: []auditinternal.PolicyRule{
		{Level: auditinternal.LevelNone, Verbs: []string{"get", "list", "watch"}},
		{Level: auditinternal.LevelMetadata, Resources: []auditinternal.GroupResources{
			{Resources: []string{"secrets", "serviceaccounts/token"}}, {Group: "authentication.k8s.io"},
		}},
		{Level: auditinternal.LevelRequestResponse},
	},
}

// openAuditLog opens the audit log of serve; there is none without --audit-log-path.
func openAuditLog(env *process.Env, f *serveFlags) (audit apiserver.Audit, closeLog func() error, err error) {
	if f.auditLog == "" {
		if f.auditPolicy != "" {
			return audit, nil, errors.New("--audit-policy-file needs --audit-log-path")
		}
		return audit, func() error { return nil }, nil
	}
	rules := writesOnly
	if f.auditPolicy != "" {
		if rules, err = policy.LoadPolicyFromFile(env.Path(f.auditPolicy)); err != nil {
			return audit, nil, fmt.Errorf("--audit-policy-file: %w", err)
		}
	}
	out, closeLog := env.Stdout, func() error { return nil }
	if f.auditLog != "-" {
		file, err := os.OpenFile(env.Path(f.auditLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return audit, nil, fmt.Errorf("--audit-log-path: %w", err)
		}
		out, closeLog = file, file.Close
	}
	return apiserver.Audit{
		Policy: policy.NewPolicyRuleEvaluator(rules),
		Sink:   auditlog.NewBackend(&lockedWriter{w: out}, auditlog.FormatJson, auditv1.SchemeGroupVersion),
	}, closeLog, nil
}

// lockedWriter is a writer for several goroutines.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

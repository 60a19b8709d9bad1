package envtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/ownership/excess"
)

// The files in the folder of a server that checks writes against a policy.
const (
	policyName = "ownership-policy.yaml"
	reportName = "ownership.txt"
)

// checkPolicy returns an error if a file is not a policy.
func checkPolicy(file string) error {
	if file == "" {
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if _, err := policy.Parse(data); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// copyPolicy copies a policy into a folder, and removes an earlier report. If file is "", it also removes an earlier
// policy, and copies nothing.
func copyPolicy(file, folder string) error {
	copied, report := filepath.Join(folder, policyName), filepath.Join(folder, reportName)
	if err := os.Remove(report); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if file == "" {
		if err := os.Remove(copied); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return errors.Join(record(report, file), copyFile(file, copied))
}

// judgeByPolicy returns an admission hook that checks writes against the policy in a program's folder; nil if there is
// no policy.
func judgeByPolicy(program string) (func(context.Context, *admission.Write) ([]string, error), error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, nil // in a test without a program
	}
	folder := filepath.Dir(path)
	data, err := os.ReadFile(filepath.Join(folder, policyName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := policy.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", policyName, err)
	}
	return func(_ context.Context, w *admission.Write) ([]string, error) {
		if w.Object == nil || w.DryRun || w.Subresource != "" && w.Subresource != "status" {
			return nil, nil
		}
		after := w.Object.DeepCopyObject()
		after.GetObjectKind().SetGroupVersionKind(w.Kind)
		var before runtime.Object
		if w.Operation == admission.Update {
			before = w.Live
		}
		taken, err := excess.FindTaken(p, before, after)
		if err != nil { // do not reject writes because of undecodable entries
			return []string{"cannot check the owners: " + err.Error()}, nil
		}
		if len(taken) == 0 {
			return nil, nil
		}
		// Several servers append to the same file.
		file, err := os.OpenFile(filepath.Join(folder, reportName), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		var warnings []string
		for _, f := range taken {
			warnings = append(warnings, f.String())
		}
		_, err = file.WriteString(excess.Error(taken).Error() + "\n")
		return warnings, errors.Join(err, file.Close())
	}, nil
}

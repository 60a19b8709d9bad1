package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/internal/printable"
)

var quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

func newPolicyPermit(env *process.Env) *cobra.Command {
	var manager, operation, subresource, kind, reason string
	var fields []string
	cmd := &cobra.Command{
		Use:   "permit FILE --manager NAME --field PATH",
		Short: "Add a permission to a policy, so that a manager may own a field",
		Long: `Permit adds a permission to the policy in FILE: the manager may own the fields of
--field in objects of --kind or, without --kind, in objects of all kinds.
Afterwards, report --policy and plan --drift accept that the manager owns these
fields. FILE is created if it does not exist. Comments in FILE are kept.

--field is a pattern (see tenure policy --help). --manager and --kind are literal
names.

Exit status: 0 on success, 1 on any error, which leaves FILE unchanged.`,
		Example: `  tenure policy permit tenure.yaml --manager my-operator --kind Deployment.apps \
    --field .metadata.labels.env`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := policy.Permission{
				Managers: []string{policy.Quote(manager)}, Operation: metav1.ManagedFieldsOperationType(operation),
				Fields: fields, Reason: reason,
			}
			for _, field := range fields {
				unquoted := quotedText.ReplaceAllString(field, "")
				if strings.Count(unquoted, "[") != strings.Count(unquoted, "]") {
					fmt.Fprintf(env.Stderr, "note: --field: %s has a single bracket: it matches only names with this "+
						"bracket\n", printable.Text(field))
				}
			}
			if kind != "" {
				p.Kinds = []string{policy.Quote(kind)}
			}
			if cmd.Flags().Changed("subresource") {
				p.Subresource = &subresource
			}
			return addPermission(env, args[0], p)
		},
	}
	f := cmd.Flags()
	f.StringVar(&manager, "manager", "", "`NAME` of the manager")
	f.StringVar(&operation, "operation", "", "permit only this `OPERATION`: Apply or Update")
	f.StringVar(&subresource, "subresource", "",
		"permit only ownership through the subresource `NAME`, such as scale; '' is the main resource")
	f.StringVar(&kind, "kind", "",
		"permit only in objects of `KIND`, such as Deployment.apps or, in the core group, Service.")
	f.StringArrayVar(&fields, "field", nil, "the field at `PATH`, and all fields in it; may be given several times")
	f.StringVar(&reason, "reason", "", "`TEXT` that says why the manager may own the field")
	_, _ = cmd.MarkFlagRequired("manager"), cmd.MarkFlagRequired("field")
	return cmd
}

// addPermission adds a permission to the policy of a file.
func addPermission(env *process.Env, file string, p policy.Permission) error {
	if err := env.CheckInside(env.Path(file)); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	text, err := os.ReadFile(env.Path(file))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = []byte("apiVersion: "+policy.APIVersion+"\nkind: "+policy.Kind+"\n"), nil
	}
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	if _, err := policy.Parse(text); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	data, err := printable.Marshal([]policy.Permission{p})
	if err != nil {
		return err
	}
	var permissions, added yaml.Node
	if err := errors.Join(yaml.Unmarshal(text, &permissions), yaml.Unmarshal(data, &added)); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	root, items := permissions.Content[0], added.Content[0].Content
	list := (*yaml.Node)(nil)
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "permissions" {
			list = root.Content[i+1]
		}
	}
	if list == nil {
		list = &yaml.Node{Kind: yaml.SequenceNode}
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "permissions"}, list)
	}
	if list.Kind != yaml.SequenceNode { // null
		*list = yaml.Node{Kind: yaml.SequenceNode}
	}
	list.Content = append(list.Content, items...)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(&permissions), encoder.Close()); err != nil {
		return err
	}
	if _, err := policy.Parse(out.Bytes()); err != nil {
		return err
	}
	if err := os.WriteFile(env.Path(file), out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	_, err = fmt.Fprintf(env.Stdout, "%s: %s may own %s\n", printable.Text(file), printable.Text(p.Managers[0]),
		printable.Text(strings.Join(p.Fields, ", ")))
	return err
}

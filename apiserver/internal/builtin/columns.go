package builtin

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// TableColumns returns the columns of the kind. All versions of a kind have the same ones.
func (k *kind) TableColumns() resources.Columns {
	if p, ok := printers[k.gvk.GroupKind()]; ok {
		return &columns{printer: p(), kind: k}
	}
	return nameAndCreation{}
}

// printers are the printers of the kinds that kubectl shows with columns of their own.
var printers = map[schema.GroupKind]func() printer{
	{Kind: "Pod"}:                   pods,
	{Kind: "PodTemplate"}:           podTemplates,
	{Kind: "ReplicationController"}: replicationControllers,
	{Kind: "Service"}:               services,
	{Kind: "Endpoints"}:             endpoints,
	{Kind: "Node"}:                  nodes,
	{Kind: "Event"}:                 events,
	{Kind: "Namespace"}:             namespaces,
	{Kind: "Secret"}:                secrets,
	{Kind: "ServiceAccount"}:        nameAndAge,
	{Kind: "PersistentVolume"}:      persistentVolumes,
	{Kind: "PersistentVolumeClaim"}: persistentVolumeClaims,
	{Kind: "ComponentStatus"}:       componentStatuses,
	{Kind: "ConfigMap"}:             configMaps,
	{Kind: "ResourceQuota"}:         resourceQuotas,

	{Group: "apps", Kind: "Deployment"}:         deployments,
	{Group: "apps", Kind: "ReplicaSet"}:         replicaSets,
	{Group: "apps", Kind: "DaemonSet"}:          daemonSets,
	{Group: "apps", Kind: "StatefulSet"}:        statefulSets,
	{Group: "apps", Kind: "ControllerRevision"}: controllerRevisions,

	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: autoscalers,
	{Group: "autoscaling", Kind: "Scale"}:                   scales,
	{Group: "batch", Kind: "Job"}:                           jobs,
	{Group: "batch", Kind: "CronJob"}:                       cronJobs,
	{Group: "policy", Kind: "PodDisruptionBudget"}:          disruptionBudgets,
	{Group: "coordination.k8s.io", Kind: "Lease"}:           leases,
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:      endpointSlices,
	{Group: "events.k8s.io", Kind: "Event"}:                 events,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:            runtimeClasses,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:     priorityClasses,

	{Group: "networking.k8s.io", Kind: "Ingress"}:       ingresses,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:  ingressClasses,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: networkPolicies,
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:   serviceCIDRs,
	{Group: "networking.k8s.io", Kind: "IPAddress"}:     ipAddresses,

	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:                   roleBindings,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:            clusterRoleBindings,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:           certificateSigningRequests,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                       apiServices,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                 flowSchemas,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}: priorityLevels,

	{Group: "storage.k8s.io", Kind: "StorageClass"}:          storageClasses,
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}: volumeAttributesClasses,
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:      volumeAttachments,
	{Group: "storage.k8s.io", Kind: "CSINode"}:               csiNodes,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:             csiDrivers,
	{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}:    csiStorageCapacities,

	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     mutatingWebhooks,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   validatingWebhooks,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:        validatingPolicies,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: validatingPolicyBindings,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}:          mutatingPolicies,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"}:   mutatingPolicyBindings,

	{Group: "resource.k8s.io", Kind: "DeviceClass"}:           nameAndAge,
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:         resourceClaims,
	{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}: nameAndAge,
	{Group: "resource.k8s.io", Kind: "ResourceSlice"}:         resourceSlices,
}

// A column is a column of a Table; T is the Go type of the objects.
type column[T any] struct {
	definition metav1.TableColumnDefinition
	cell       func(T, resources.Since) any
}

// A printer converts objects of one Go type to the rows of a Table.
type printer struct {
	definitions []metav1.TableColumnDefinition
	cells       func(obj any, since resources.Since) []any
	// conditions returns the conditions of a row; nil if rows of the kind have none.
	conditions func(obj any) []metav1.TableRowCondition
}

// newPrinter returns a printer with these columns.
func newPrinter[T any](list ...column[T]) printer {
	var p printer
	for _, c := range list {
		p.definitions = append(p.definitions, c.definition)
	}
	p.cells = func(obj any, since resources.Since) []any {
		cells := make([]any, len(list))
		for i, c := range list {
			cells[i] = c.cell(obj.(T), since)
		}
		return cells
	}
	return p
}

// col returns a column. description is usually that of the field in the API reference.
func col[T any](name, typ, description string, cell func(T) any) column[T] {
	return column[T]{
		definition: metav1.TableColumnDefinition{Name: name, Type: typ, Description: description},
		cell:       func(obj T, _ resources.Since) any { return cell(obj) },
	}
}

// since returns a column that shows how long ago a time is.
func since[T any](name, description string, when func(T) time.Time) column[T] {
	return column[T]{
		definition: metav1.TableColumnDefinition{Name: name, Type: "string", Description: description},
		cell:       func(obj T, since resources.Since) any { return sinceKnown(since, when(obj)) },
	}
}

// wide gives columns priority 1: kubectl shows them with -o wide only.
func wide[T any](list ...column[T]) []column[T] {
	for i := range list {
		list[i].definition.Priority = 1
	}
	return list
}

var metaDocs = metav1.ObjectMeta{}.SwaggerDoc()

// name returns the column Name.
func name[T resources.Object]() column[T] {
	return nameAs(func(obj T) string { return obj.GetName() })
}

func nameAs[T any](cell func(T) string) column[T] {
	c := col("Name", "string", metaDocs["name"], func(obj T) any { return cell(obj) })
	c.definition.Format = "name"
	return c
}

// age returns the column Age.
func age[T resources.Object]() column[T] {
	return since("Age", metaDocs["creationTimestamp"], func(obj T) time.Time { return obj.GetCreationTimestamp().Time })
}

// sinceKnown returns how long ago a time is, if it is known.
func sinceKnown(since resources.Since, t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return since(t)
}

// columns are the columns of a kind that has a printer.
type columns struct {
	printer
	kind *kind
}

func (c *columns) Definitions() []metav1.TableColumnDefinition { return c.definitions }

func (c *columns) Cells(obj resources.Object, since resources.Since) ([]any, error) {
	converted, err := c.kind.toStorageVersion(obj)
	if err != nil {
		return nil, err
	}
	return c.cells(converted, since), nil
}

// Conditions returns the conditions of the row of an object.
func (c *columns) Conditions(obj resources.Object) []metav1.TableRowCondition {
	if c.conditions == nil {
		return nil
	}
	return c.conditions(obj)
}

// toStorageVersion converts an object to the storage version, which printers expect.
func (k *kind) toStorageVersion(obj resources.Object) (resources.Object, error) {
	if k.resource.Stored == k.gvk {
		return obj, nil
	}
	return convert(obj, k.resource.Stored)
}

// nameAndAge is the printer of kinds with no other columns.
func nameAndAge() printer { return newPrinter(name[resources.Object](), age[resources.Object]()) }

// nameAndCreation are the columns of kinds without a printer.
type nameAndCreation struct{}

func (nameAndCreation) Definitions() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: metaDocs["name"]},
		{Name: "Created At", Type: "date", Description: metaDocs["creationTimestamp"]},
	}
}

func (nameAndCreation) Cells(obj resources.Object, _ resources.Since) ([]any, error) {
	return []any{obj.GetName(), obj.GetCreationTimestamp().Time.UTC().Format(time.RFC3339)}, nil
}

// orZero returns *p, or the zero value if p is nil.
func orZero[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

// firstFew joins the first items of a list and appends the number of the others:
// "a,b,c + 2 more...".
func firstFew(list []string, most int, separator string) string {
	if len(list) <= most {
		return strings.Join(list, separator)
	}
	return strings.Join(list[:most], separator) + more(len(list)-most)
}

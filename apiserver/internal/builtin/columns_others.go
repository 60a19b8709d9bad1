package builtin

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

func leases() printer {
	type object = *coordinationv1.Lease
	return newPrinter(
		name[object](),
		col("Holder", "string", coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"], func(l object) any {
			return orZero(l.Spec.HolderIdentity)
		}),
		age[object](),
	)
}

func endpointSlices() printer {
	type object = *discoveryv1.EndpointSlice
	docs := discoveryv1.EndpointSlice{}.SwaggerDoc()
	return newPrinter(
		name[object](),
		col("AddressType", "string", docs["addressType"], func(s object) any { return string(s.AddressType) }),
		col("Ports", "string", docs["ports"], func(s object) any {
			var list []string
			for _, p := range s.Ports {
				switch {
				case p.Port != nil:
					list = append(list, strconv.Itoa(int(*p.Port)))
				case p.Name != nil:
					list = append(list, *p.Name)
				default:
					list = append(list, "*")
				}
			}
			return cmp.Or(firstFew(list, 3, ","), unset)
		}),
		col("Endpoints", "string", docs["endpoints"], func(s object) any {
			var list []string
			for _, e := range s.Endpoints {
				list = append(list, e.Addresses...)
			}
			return cmp.Or(firstFew(list, 3, ","), unset)
		}),
		age[object](),
	)
}

func runtimeClasses() printer {
	type object = *nodev1.RuntimeClass
	return newPrinter(name[object](), col("Handler", "string", "", func(c object) any { return c.Handler }), age[object]())
}

func priorityClasses() printer {
	type object = *schedulingv1.PriorityClass
	docs := schedulingv1.PriorityClass{}.SwaggerDoc()
	return newPrinter(
		name[object](),
		col("Value", "integer", docs["value"], func(c object) any { return int64(c.Value) }),
		col("Global-Default", "boolean", docs["globalDefault"], func(c object) any { return c.GlobalDefault }),
		age[object](),
		col("PreemptionPolicy", "string", docs["preemptionPolicy"], func(c object) any {
			return string(orZero(c.PreemptionPolicy))
		}),
	)
}

func ingresses() printer {
	type object = *networkingv1.Ingress
	return newPrinter(
		name[object](),
		col("Class", "string", "The name of the IngressClass resource that should be used for additional configuration",
			func(i object) any {
				if i.Spec.IngressClassName == nil {
					return none
				}
				return *i.Spec.IngressClassName
			}),
		col("Hosts", "string", "Hosts that incoming requests are matched against before the ingress rule",
			func(i object) any { return hosts(i.Spec.Rules) }),
		col("Address", "string", "Address is a list containing ingress points for the load-balancer", func(i object) any {
			var list []string
			for _, in := range i.Status.LoadBalancer.Ingress {
				list = append(list, cmp.Or(in.IP, in.Hostname))
			}
			return strings.Join(uniqueSorted(list), ",")
		}),
		col("Ports", "string", "Ports of TLS configurations that open", func(i object) any {
			if len(i.Spec.TLS) > 0 {
				return "80, 443"
			}
			return "80"
		}),
		age[object](),
	)
}

// hosts returns the first hosts of Ingress rules and the number of the rules after them.
func hosts(rules []networkingv1.IngressRule) string {
	var list []string
	for i, r := range rules {
		if len(list) == 3 {
			return strings.Join(list, ",") + more(len(rules)-min(i, 3))
		}
		if r.Host != "" {
			list = append(list, r.Host)
		}
	}
	return cmp.Or(strings.Join(list, ","), "*")
}

// defaulted returns the name of an object, with " (default)" if an annotation makes it the
// default of its kind.
func defaulted(obj metav1.Object, annotations ...string) string {
	for _, a := range annotations {
		if obj.GetAnnotations()[a] == "true" {
			return obj.GetName() + " (default)"
		}
	}
	return obj.GetName()
}

func ingressClasses() printer {
	type object = *networkingv1.IngressClass
	return newPrinter(
		nameAs(func(c object) string { return defaulted(c, networkingv1.AnnotationIsDefaultIngressClass) }),
		col("Controller", "string", "Controller that is responsible for handling this class", func(c object) any {
			return c.Spec.Controller
		}),
		col("Parameters", "string", "A reference to a resource with additional parameters", func(c object) any {
			p := c.Spec.Parameters
			switch {
			case p == nil:
				return none
			case p.APIGroup == nil:
				return p.Kind + "/" + p.Name
			}
			return p.Kind + "." + *p.APIGroup + "/" + p.Name
		}),
		age[object](),
	)
}

func networkPolicies() printer {
	type object = *networkingv1.NetworkPolicy
	return newPrinter(
		name[object](),
		col("Pod-Selector", "string", networkingv1.NetworkPolicySpec{}.SwaggerDoc()["podSelector"], func(p object) any {
			return metav1.FormatLabelSelector(&p.Spec.PodSelector)
		}),
		age[object](),
	)
}

func serviceCIDRs() printer {
	type object = *networkingv1.ServiceCIDR
	return newPrinter(
		name[object](),
		col("CIDRs", "string", networkingv1.ServiceCIDRSpec{}.SwaggerDoc()["cidrs"], func(c object) any {
			return strings.Join(c.Spec.CIDRs, ",")
		}),
		age[object](),
	)
}

func ipAddresses() printer {
	type object = *networkingv1.IPAddress
	p := newPrinter(
		name[object](),
		col("ParentRef", "string", networkingv1.IPAddressSpec{}.SwaggerDoc()["parentRef"], func(a object) any {
			ref := a.Spec.ParentRef
			if ref == nil {
				return none
			}
			text := strings.ToLower(schema.GroupResource{Group: ref.Group, Resource: ref.Resource}.String())
			if ref.Namespace != "" {
				text += "/" + ref.Namespace
			}
			return text + "/" + ref.Name
		}),
		age[object](),
	)
	// kube-apiserver defines two columns and sends three cells.
	p.definitions = p.definitions[:2]
	return p
}

func roleBindings() printer {
	type object = *rbacv1.RoleBinding
	return bindings("roleBinding", rbacv1.RoleBinding{}.SwaggerDoc()["roleRef"],
		func(b object) rbacv1.RoleRef { return b.RoleRef }, func(b object) []rbacv1.Subject { return b.Subjects })
}

func clusterRoleBindings() printer {
	type object = *rbacv1.ClusterRoleBinding
	return bindings("clusterRoleBinding", rbacv1.ClusterRoleBinding{}.SwaggerDoc()["roleRef"],
		func(b object) rbacv1.RoleRef { return b.RoleRef }, func(b object) []rbacv1.Subject { return b.Subjects })
}

// bindings returns the printer of RoleBindings and ClusterRoleBindings.
func bindings[T resources.Object](
	kind, description string, role func(T) rbacv1.RoleRef, subjects func(T) []rbacv1.Subject,
) printer {
	of := func(kind string) func(T) any {
		return func(obj T) any {
			var list []string
			for _, s := range subjects(obj) {
				switch {
				case s.Kind != kind:
				case kind == rbacv1.ServiceAccountKind:
					list = append(list, s.Namespace+"/"+s.Name)
				default:
					list = append(list, s.Name)
				}
			}
			return strings.Join(list, ", ")
		}
	}
	return newPrinter(append([]column[T]{
		name[T](),
		col("Role", "string", description, func(obj T) any { return role(obj).Kind + "/" + role(obj).Name }),
		age[T](),
	}, wide(
		col("Users", "string", "Users in the "+kind, of(rbacv1.UserKind)),
		col("Groups", "string", "Groups in the "+kind, of(rbacv1.GroupKind)),
		col("ServiceAccounts", "string", "ServiceAccounts in the "+kind, of(rbacv1.ServiceAccountKind)),
	)...)...)
}

func certificateSigningRequests() printer {
	type object = *certificatesv1.CertificateSigningRequest
	spec := certificatesv1.CertificateSigningRequestSpec{}.SwaggerDoc()
	status := certificatesv1.CertificateSigningRequestStatus{}.SwaggerDoc()
	return newPrinter(
		name[object](),
		age[object](),
		col("SignerName", "string", spec["signerName"], func(r object) any { return cmp.Or(r.Spec.SignerName, none) }),
		col("Requestor", "string", spec["request"], func(r object) any { return r.Spec.Username }),
		col("RequestedDuration", "string", spec["expirationSeconds"], func(r object) any {
			if r.Spec.ExpirationSeconds == nil {
				return none
			}
			return duration.HumanDuration(time.Duration(*r.Spec.ExpirationSeconds) * time.Second)
		}),
		col("Condition", "string", status["conditions"], func(r object) any { return csrStatus(r) }),
	)
}

func csrStatus(r *certificatesv1.CertificateSigningRequest) string {
	is := map[certificatesv1.RequestConditionType]bool{}
	for _, c := range r.Status.Conditions {
		is[c.Type] = true
	}
	status := "Pending"
	if is[certificatesv1.CertificateApproved] {
		status = "Approved"
	}
	if is[certificatesv1.CertificateDenied] {
		status = "Denied"
	}
	if is[certificatesv1.CertificateFailed] {
		status += ",Failed"
	}
	if len(r.Status.Certificate) > 0 {
		status += ",Issued"
	}
	return status
}

func apiServices() printer {
	type object = *apiregistrationv1.APIService
	return newPrinter(
		name[object](),
		col("Service", "string", "The reference to the service that hosts this API endpoint.", func(s object) any {
			if s.Spec.Service == nil {
				return "Local"
			}
			return s.Spec.Service.Namespace + "/" + s.Spec.Service.Name
		}),
		col("Available", "string", "Whether this service is available.", func(s object) any {
			for _, c := range s.Status.Conditions {
				switch {
				case c.Type != apiregistrationv1.Available:
				case c.Status == apiregistrationv1.ConditionTrue || c.Reason == "":
					return string(c.Status)
				default:
					return fmt.Sprintf("%s (%s)", c.Status, c.Reason)
				}
			}
			return string(apiregistrationv1.ConditionUnknown)
		}),
		age[object](),
	)
}

func flowSchemas() printer {
	type object = *flowcontrolv1.FlowSchema
	spec := flowcontrolv1.FlowSchemaSpec{}.SwaggerDoc()
	return newPrinter(
		name[object](),
		col("PriorityLevel", "string", flowcontrolv1.PriorityLevelConfigurationReference{}.SwaggerDoc()["name"],
			func(s object) any {
				return s.Spec.PriorityLevelConfiguration.Name
			}),
		col("MatchingPrecedence", "string", spec["matchingPrecedence"], func(s object) any {
			return int64(s.Spec.MatchingPrecedence)
		}),
		col("DistinguisherMethod", "string", spec["distinguisherMethod"], func(s object) any {
			if s.Spec.DistinguisherMethod == nil {
				return none
			}
			return string(s.Spec.DistinguisherMethod.Type)
		}),
		age[object](),
		col("MissingPL", "string", "references a broken or non-existent PriorityLevelConfiguration", func(s object) any {
			for _, c := range s.Status.Conditions {
				if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
					return string(c.Status)
				}
			}
			return "?"
		}),
	)
}

func priorityLevels() printer {
	type object = *flowcontrolv1.PriorityLevelConfiguration
	queuing := flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()
	queue := func(of func(*flowcontrolv1.QueuingConfiguration) int32) func(object) any {
		return func(c object) any {
			if c.Spec.Limited == nil || c.Spec.Limited.LimitResponse.Queuing == nil {
				return none
			}
			return of(c.Spec.Limited.LimitResponse.Queuing)
		}
	}
	return newPrinter(
		name[object](),
		col("Type", "string", flowcontrolv1.PriorityLevelConfigurationSpec{}.SwaggerDoc()["type"], func(c object) any {
			return string(c.Spec.Type)
		}),
		col("NominalConcurrencyShares", "string",
			flowcontrolv1.LimitedPriorityLevelConfiguration{}.SwaggerDoc()["nominalConcurrencyShares"], func(c object) any {
				if c.Spec.Limited == nil {
					return none
				}
				return orZero(c.Spec.Limited.NominalConcurrencyShares)
			}),
		col("Queues", "string", queuing["queues"],
			queue(func(q *flowcontrolv1.QueuingConfiguration) int32 { return q.Queues })),
		col("HandSize", "string", queuing["handSize"],
			queue(func(q *flowcontrolv1.QueuingConfiguration) int32 { return q.HandSize })),
		col("QueueLengthLimit", "string", queuing["queueLengthLimit"],
			queue(func(q *flowcontrolv1.QueuingConfiguration) int32 { return q.QueueLengthLimit })),
		age[object](),
	)
}

func resourceClaims() printer {
	type object = *resourcev1.ResourceClaim
	return newPrinter(
		name[object](),
		col("State", "string", "A summary of the current state (allocated, pending, reserved, etc.).", func(c object) any {
			var states []string
			deleted, allocated := c.DeletionTimestamp != nil, c.Status.Allocation != nil
			if deleted {
				states = append(states, "deleted")
			}
			if allocated {
				states = append(states, "allocated")
			} else if !deleted {
				states = append(states, "pending")
			}
			if allocated && len(c.Status.ReservedFor) > 0 {
				states = append(states, "reserved")
			}
			return strings.Join(states, ",")
		}),
		age[object](),
	)
}

func resourceSlices() printer {
	type object = *resourcev1.ResourceSlice
	spec := resourcev1.ResourceSliceSpec{}.SwaggerDoc()
	return newPrinter(
		name[object](),
		col("Node", "string", spec["nodeName"], func(s object) any { return orZero(s.Spec.NodeName) }),
		col("Driver", "string", spec["driver"], func(s object) any { return s.Spec.Driver }),
		col("Pool", "string", resourcev1.ResourcePool{}.SwaggerDoc()["name"], func(s object) any { return s.Spec.Pool.Name }),
		age[object](),
	)
}

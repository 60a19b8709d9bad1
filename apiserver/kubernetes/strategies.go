package kubernetes

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kube-aggregator/pkg/registry/apiservice"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/certificates/clustertrustbundle"
	"k8s.io/kubernetes/pkg/registry/certificates/podcertificaterequest"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/ipaddress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/networking/servicecidr"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/devicetaintrule"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass"
	"k8s.io/kubernetes/pkg/registry/storagemigration/storagemigration"
	"k8s.io/utils/clock"
)

// strategy are the strategies of a resource: of itself, and of its subresources.
type strategy struct {
	rest.RESTCreateStrategy
	update map[string]rest.RESTUpdateStrategy
}

// both is a strategy for create and update.
type both interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

type subresources map[string]rest.RESTUpdateStrategy

// of returns the strategies of a resource. Scale writes the resource itself.
func of(main both, others subresources) strategy {
	update := subresources{"": main, "scale": main}
	for name, s := range others {
		update[name] = s
	}
	return strategy{main, update}
}

// newStrategies returns kube-apiserver's strategies of the built-in kinds, but for CustomResourceDefinitions, which
// apiextensions-apiserver validates.
func newStrategies() map[schema.GroupKind]strategy {
	all := map[schema.GroupKind]strategy{}
	for _, some := range []map[schema.GroupKind]strategy{
		coreStrategies(), workloadStrategies(), infrastructureStrategies(), controlStrategies(),
	} {
		maps.Copy(all, some)
	}
	return all
}

// coreStrategies returns the strategies of the core group.
func coreStrategies() map[schema.GroupKind]strategy {
	return map[schema.GroupKind]strategy{
		{Kind: "ConfigMap"}:  of(configmap.Strategy, nil),
		{Kind: "Endpoints"}:  of(endpoint.Strategy, nil),
		{Kind: "Event"}:      of(event.Strategy, nil),
		{Kind: "LimitRange"}: of(limitrange.Strategy, nil),
		{Kind: "Namespace"}: of(namespace.Strategy, subresources{
			"status":   namespace.StatusStrategy,
			"finalize": namespace.FinalizeStrategy,
		}),
		{Kind: "Node"}: of(node.Strategy, subresources{"status": node.StatusStrategy}),
		{Kind: "PersistentVolume"}: of(persistentvolume.Strategy, subresources{
			"status": persistentvolume.StatusStrategy,
		}),
		{Kind: "PersistentVolumeClaim"}: of(persistentvolumeclaim.Strategy, subresources{
			"status": persistentvolumeclaim.StatusStrategy,
		}),
		{Kind: "Pod"}: of(pod.Strategy, subresources{
			"status":              pod.StatusStrategy,
			"ephemeralcontainers": pod.EphemeralContainersStrategy,
			"resize":              pod.ResizeStrategy,
		}),
		{Kind: "PodTemplate"}: of(podtemplate.Strategy, nil),
		{Kind: "ReplicationController"}: of(replicationcontroller.Strategy, subresources{
			"status": replicationcontroller.StatusStrategy,
		}),
		{Kind: "ResourceQuota"}:  of(resourcequota.Strategy, subresources{"status": resourcequota.StatusStrategy}),
		{Kind: "Secret"}:         of(secret.Strategy, nil),
		{Kind: "Service"}:        of(service.Strategy, subresources{"status": service.StatusStrategy}),
		{Kind: "ServiceAccount"}: of(serviceaccount.Strategy, nil),
	}
}

// workloadStrategies returns the strategies of what runs Pods, and of how they run.
func workloadStrategies() map[schema.GroupKind]strategy {
	return map[schema.GroupKind]strategy{
		{Group: "apps", Kind: "ControllerRevision"}: of(controllerrevision.Strategy, nil),
		{Group: "apps", Kind: "DaemonSet"}:          of(daemonset.Strategy, subresources{"status": daemonset.StatusStrategy}),
		{Group: "apps", Kind: "Deployment"}: of(
			deployment.Strategy,
			subresources{"status": deployment.StatusStrategy},
		),
		{Group: "apps", Kind: "ReplicaSet"}: of(
			replicaset.Strategy,
			subresources{"status": replicaset.StatusStrategy},
		),
		{Group: "apps", Kind: "StatefulSet"}: of(statefulset.Strategy, subresources{
			"status": statefulset.StatusStrategy,
		}),
		{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: of(horizontalpodautoscaler.Strategy, subresources{
			"status": horizontalpodautoscaler.StatusStrategy,
		}),
		{Group: "batch", Kind: "CronJob"}:            of(cronjob.Strategy, subresources{"status": cronjob.StatusStrategy}),
		{Group: "batch", Kind: "Job"}:                of(job.Strategy, subresources{"status": job.StatusStrategy}),
		{Group: "node.k8s.io", Kind: "RuntimeClass"}: of(runtimeclass.Strategy, nil),
		{Group: "policy", Kind: "PodDisruptionBudget"}: of(poddisruptionbudget.Strategy, subresources{
			"status": poddisruptionbudget.StatusStrategy,
		}),
		{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: of(priorityclass.Strategy, nil),
	}
}

// infrastructureStrategies returns the strategies of networks, storage and devices.
func infrastructureStrategies() map[schema.GroupKind]strategy {
	claims := resourceclaim.NewStrategy(namespaces{}, authorizerfactory.NewAlwaysAllowAuthorizer())
	return map[schema.GroupKind]strategy{
		{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: of(endpointslice.Strategy, nil),
		{Group: "networking.k8s.io", Kind: "IPAddress"}:    of(ipaddress.Strategy, nil),
		{Group: "networking.k8s.io", Kind: "Ingress"}: of(ingress.Strategy, subresources{
			"status": ingress.StatusStrategy,
		}),
		{Group: "networking.k8s.io", Kind: "IngressClass"}:  of(ingressclass.Strategy, nil),
		{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: of(networkpolicy.Strategy, nil),
		{Group: "networking.k8s.io", Kind: "ServiceCIDR"}: of(servicecidr.Strategy, subresources{
			"status": servicecidr.StatusStrategy,
		}),
		{Group: "resource.k8s.io", Kind: "DeviceClass"}: of(deviceclass.Strategy, nil),
		{Group: "resource.k8s.io", Kind: "DeviceTaintRule"}: of(devicetaintrule.Strategy, subresources{
			"status": devicetaintrule.StatusStrategy,
		}),
		{Group: "resource.k8s.io", Kind: "ResourceClaim"}: of(claims, subresources{
			"status": resourceclaim.NewStatusStrategy(claims),
		}),
		{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}: of(
			resourceclaimtemplate.NewStrategy(namespaces{}),
			subresources{},
		),
		{Group: "resource.k8s.io", Kind: "ResourceSlice"}:     of(resourceslice.Strategy, nil),
		{Group: "storage.k8s.io", Kind: "CSIDriver"}:          of(csidriver.Strategy, nil),
		{Group: "storage.k8s.io", Kind: "CSINode"}:            of(csinode.Strategy, nil),
		{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}: of(csistoragecapacity.Strategy, nil),
		{Group: "storage.k8s.io", Kind: "StorageClass"}:       of(storageclass.Strategy, nil),
		{Group: "storage.k8s.io", Kind: "VolumeAttachment"}: of(volumeattachment.Strategy, subresources{
			"status": volumeattachment.StatusStrategy,
		}),
		{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}: of(volumeattributesclass.Strategy, nil),
	}
}

// controlStrategies returns the strategies of what the API server itself goes by, and of its clients.
func controlStrategies() map[schema.GroupKind]strategy {
	s := scheme()
	allowAll := authorizerfactory.NewAlwaysAllowAuthorizer()
	certificateRequests := podcertificaterequest.NewStrategy()
	validatingPolicies := validatingadmissionpolicy.NewStrategy(nil, nil)
	return map[schema.GroupKind]strategy{
		{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}: of(
			mutatingadmissionpolicy.NewStrategy(nil, nil),
			subresources{},
		),
		{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"}: of(
			mutatingadmissionpolicybinding.NewStrategy(nil, nil, nil),
			subresources{},
		),
		{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}: of(
			mutatingwebhookconfiguration.Strategy,
			subresources{},
		),
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}: of(validatingPolicies, subresources{
			"status": validatingadmissionpolicy.NewStatusStrategy(validatingPolicies),
		}),
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: of(
			validatingadmissionpolicybinding.NewStrategy(nil, nil, nil),
			subresources{},
		),
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: of(
			validatingwebhookconfiguration.Strategy,
			subresources{},
		),
		{Group: "apiregistration.k8s.io", Kind: "APIService"}: of(apiservice.NewStrategy(s), subresources{
			"status": apiservice.NewStatusStrategy(s),
		}),
		{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: of(certificates.Strategy, subresources{
			"status":   certificates.StatusStrategy,
			"approval": certificates.ApprovalStrategy,
		}),
		{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}: of(clustertrustbundle.Strategy, nil),
		{Group: "certificates.k8s.io", Kind: "PodCertificateRequest"}: of(certificateRequests, subresources{
			"status": podcertificaterequest.NewStatusStrategy(certificateRequests, allowAll, clock.RealClock{}),
		}),
		{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}: of(storagemigration.Strategy, subresources{
			"status": storagemigration.StatusStrategy,
		}),
		{Group: "coordination.k8s.io", Kind: "Lease"}: of(lease.Strategy, nil),
		{Group: "events.k8s.io", Kind: "Event"}:       of(event.Strategy, nil),
		{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}: of(flowschema.Strategy, subresources{
			"status": flowschema.StatusStrategy,
		}),
		{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}: of(
			prioritylevelconfiguration.Strategy,
			subresources{
				"status": prioritylevelconfiguration.StatusStrategy,
			},
		),
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        of(clusterrole.Strategy, nil),
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: of(clusterrolebinding.Strategy, nil),
		{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               of(role.Strategy, nil),
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        of(rolebinding.Strategy, nil),
	}
}

package kubernetes

// plannedWorkloads are workloads, and kinds that they use.
var plannedWorkloads = []plannedKind{
	{"v1", "Pod", "/api/v1" + inDefault + "pods", append(filled(`"spec":SPEC`, ""),
		`"spec":{"serviceAccountName":"s","containers":[{"name":"c","image":"i"}],"tolerations":[{"key":"k",`+
			`"operator":"Exists"}]}`,
		`"spec":{"containers":[{"name":"c","image":"i"}],"tolerations":[],"priority":null,"dnsPolicy":""}`)},
	{"v1", "PodTemplate", "/api/v1" + inDefault + "podtemplates", filled(`"template":{"metadata":{"labels":{"a":"b"}},`+
		`"spec":SPEC}`, "")},
	{"v1", "ReplicationController", "/api/v1" + inDefault + "replicationcontrollers",
		filled(`"spec":{"selector":{"a":"b"},`+
			`"template":{"metadata":{"labels":{"a":"b"}},"spec":SPEC}}`, "")},
	{"apps/v1", "Deployment", "/apis/apps/v1" + inDefault + "deployments", filled(`"spec":{`+labelled+`}`, "")},
	{"apps/v1", "ReplicaSet", "/apis/apps/v1" + inDefault + "replicasets", filled(`"spec":{`+labelled+`}`, "")},
	{"apps/v1", "DaemonSet", "/apis/apps/v1" + inDefault + "daemonsets", filled(`"spec":{`+labelled+`}`, "")},
	{"apps/v1", "StatefulSet", "/apis/apps/v1" + inDefault + "statefulsets", filled(`"spec":{`+labelled+`,`+claim+`}`,
		"")},
	{"batch/v1", "Job", "/apis/batch/v1" + inDefault + "jobs", filled(`"spec":{"template":{"spec":SPEC}}`,
		`,"restartPolicy":"Never"`)},
	{"batch/v1", "CronJob", "/apis/batch/v1" + inDefault + "cronjobs", filled(`"spec":{"schedule":"* * * * *",`+
		`"jobTemplate":{"spec":{"template":{"spec":SPEC}}}}`, `,"restartPolicy":"Never"`)},
	{"v1", "Service", "/api/v1" + inDefault + "services", []string{
		`"spec":{"ports":[{"port":80}]}`, `"spec":{"selector":{},"ports":[{"port":80,"targetPort":"http"}]}`,
		`"spec":{"type":"NodePort","ports":[{"port":80,"protocol":"UDP"}]}`, `"spec":{"clusterIP":"None","ports":[]}`,
		`"spec":{"sessionAffinity":"ClientIP","ports":[{"name":"a","port":80},{"name":"b","port":81}]}`,
		`"spec":{"type":"ExternalName","externalName":"example.com"}`,
		`"spec":{"clusterIP":"","ports":[{"port":80,"nodePort":0}]}`,
		`"spec":{"type":"LoadBalancer","ports":[{"port":80,"nodePort":0}],"ipFamilies":[],"clusterIPs":[]}`,
	}},
	{"v1", "Secret", "/api/v1" + inDefault + "secrets", []string{
		`"stringData":{"a":"b"}`, `"data":{"a":"Yg=="}`, `"data":{},"stringData":{}`, `"type":"Opaque","stringData":{"a":""}`,
		`"immutable":false,"data":{"a":""}`,
	}},
	{"v1", "ConfigMap", "/api/v1" + inDefault + "configmaps", []string{
		`"data":{"a":""}`, `"data":{}`, `"binaryData":{"a":"Yg=="}`, `"immutable":false`, `"data":null`,
	}},
	{"v1", "LimitRange", "/api/v1" + inDefault + "limitranges", []string{
		`"spec":{"limits":[{"type":"Container","max":{"cpu":"1"}}]}`, `"spec":{"limits":[{"type":"Container","default":{` +
			`"memory":"1024Mi"}}]}`, `"spec":{"limits":[{"type":"Pod","max":{"cpu":"2000m"}}]}`,
		`"spec":{"limits":[{"type":"Container","min":{"cpu":"0.0001"}}]}`,
		`"spec":{"limits":[{"type":"PersistentVolumeClaim",` +
			`"min":{"storage":"1Gi"}}]}`,
	}},
	{"v1", "PersistentVolumeClaim", "/api/v1" + inDefault + "persistentvolumeclaims", claims},
	{"networking.k8s.io/v1", "NetworkPolicy", "/apis/networking.k8s.io/v1" + inDefault + "networkpolicies", []string{
		`"spec":{"podSelector":{},"ingress":[{"ports":[{"port":80}]}]}`, `"spec":{"podSelector":{},"egress":[{"ports":[{` +
			`"port":"dns"}],"to":[]}]}`, `"spec":{"podSelector":{},"ingress":[{}]}`,
		`"spec":{"podSelector":{"matchLabels":{}},"ingress":[],"policyTypes":["Ingress"]}`,
		`"spec":{"podSelector":{},"egress":[{"to":[{"ipBlock":{"cidr":"10.0.0.0/8","except":[]}}]}]}`,
	}},
	{"networking.k8s.io/v1", "Ingress", "/apis/networking.k8s.io/v1" + inDefault + "ingresses", []string{
		`"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}`, `"spec":{"rules":[{"host":"","http":{` +
			`"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"s","port":{"name":"h"}}}}]}}]}`,
		`"spec":{"tls":[{"hosts":[]}],"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}`,
		`"spec":{"rules":[{"host":"a.b"}]}`, `"spec":{"ingressClassName":"c","tls":[{}],"rules":[{"host":"a.b"}]}`,
	}},
	{"rbac.authorization.k8s.io/v1", "RoleBinding", "/apis/rbac.authorization.k8s.io/v1" + inDefault + "rolebindings",
		bindings("Role")},
	{"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
		bindings("ClusterRole")},
	{"discovery.k8s.io/v1", "EndpointSlice", "/apis/discovery.k8s.io/v1" + inDefault + "endpointslices", []string{
		`"addressType":"IPv4","endpoints":[],"ports":[{"port":80}]`, `"addressType":"IPv4","endpoints":[{"addresses":[` +
			`"10.0.0.1"]}],"ports":[{"name":""}]`, `"addressType":"IPv4","endpoints":null,"ports":null`,
		`"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"],"conditions":{}}]`,
		`"addressType":"IPv6","endpoints":[],"ports":[{"name":"a","port":80,"protocol":"UDP"},{"name":"b"}]`,
	}},
	{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration",
		"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", webhooks},
	{"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration",
		"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", webhooks},
	{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy",
		"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", policies},
	{"autoscaling/v2", "HorizontalPodAutoscaler", "/apis/autoscaling/v2" + inDefault + "horizontalpodautoscalers",
		[]string{
			`"spec":{` + scaled + `}`, `"spec":{` + scaled + `,"minReplicas":2,"metrics":[]}`, `"spec":{` + scaled +
				`,"behavior":{"scaleDown":{}}}`, `"spec":{` + scaled + `,"behavior":{"scaleUp":{"policies":[{"type":"Pods",` +
				`"value":1,"periodSeconds":10}]}}}`,
			`"spec":{` + scaled + `,"metrics":[{"type":"Resource","resource":{"name":"cpu",` +
				`"target":{"type":"AverageValue","averageValue":"1000m"}}}]}`,
		}},
	{"storage.k8s.io/v1", "StorageClass", "/apis/storage.k8s.io/v1/storageclasses", []string{
		`"provisioner":"p/q"`, `"provisioner":"p/q","parameters":{}`, `"provisioner":"p/q","mountOptions":[]`,
		`"provisioner":"p/q","allowVolumeExpansion":false`, `"provisioner":"p/q","parameters":{"a":""}`,
	}},
}

const scaled = `"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}`

var claims = []string{
	`"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1024Mi"}}}`,
	`"spec":{"accessModes":["ReadWriteOnce"],"volumeName":"","resources":{"requests":{"storage":"1Gi"}}}`,
	`"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"","resources":{"requests":{"storage":"1Gi"}}}`,
	`"spec":{"accessModes":["ReadWriteOnce"],"selector":{},"resources":{"requests":{"storage":"1Gi"},"limits":{}}}`,
	`"spec":{"accessModes":["ReadWriteOnce"],"dataSource":{"kind":"PersistentVolumeClaim","name":"x"},` +
		`"resources":{"requests":{"storage":"1.5Gi"}}}`,
}

func bindings(kind string) []string {
	ref := `"roleRef":{"kind":"` + kind + `","name":"r"}`
	return []string{
		ref + `,"subjects":[{"kind":"User","name":"u"}]`, ref + `,"subjects":[{"kind":"Group","name":"g"}]`,
		ref + `,"subjects":[{"kind":"ServiceAccount","name":"s","namespace":"n","apiGroup":""}]`, ref + `,"subjects":[]`, ref,
	}
}

const client = `"name":"a.b.c","admissionReviewVersions":["v1"],"sideEffects":"None","clientConfig":{"service":{` +
	`"name":"s","namespace":"n"}}`

var webhooks = []string{
	`"webhooks":[{` + client + `}]`, `"webhooks":[{` + client + `,"rules":[{"apiGroups":[""],"apiVersions":["v1"],` +
		`"operations":["CREATE"],"resources":["pods"]}]}]`, `"webhooks":[{` + client + `,"namespaceSelector":{},"rules":[]}]`,
	`"webhooks":[{"name":"a.b.c","admissionReviewVersions":["v1"],"sideEffects":"None","clientConfig":{` +
		`"url":"https://127.0.0.1:1"}}]`, `"webhooks":[]`,
}

const validations = `"validations":[{"expression":"true"}]`

var policies = []string{
	`"spec":{` + validations + `,"matchConstraints":{"resourceRules":[{"apiGroups":["apps"],"apiVersions":["v1"],` +
		`"operations":["CREATE"],"resources":["deployments"]}]}}`,
	`"spec":{"validations":[{"expression":"true","message":""}],"matchConstraints":{"resourceRules":[{"apiGroups":[""],` +
		`"apiVersions":["v1"],"operations":["*"],"resources":["pods"]}],"namespaceSelector":{}}}`,
	`"spec":{"failurePolicy":"Ignore","variables":[],` + validations + `,` +
		`"matchConstraints":{"resourceRules":[{"apiGroups":[` +
		`""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"],"scope":"Namespaced"}]}}`,
	`"spec":{"matchConditions":[{"name":"m","expression":"true"}],` + validations + `,` +
		`"matchConstraints":{"resourceRules":[{` +
		`"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"],"resourceNames":[]}]}}`,
	`"spec":{"auditAnnotations":[{"key":"k","valueExpression":"'v'"}],"matchConstraints":{"excludeResourceRules":[],` +
		`"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]}}`,
}

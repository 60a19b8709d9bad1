package kubernetes

// plannedCluster are kinds of the core group and of those that clusters are made of.
var plannedCluster = []plannedKind{
	{apiVersion: "v1", kind: "Endpoints", path: "/api/v1" + inDefault + "endpoints", bodies: []string{
		`"subsets":[{"addresses":[{"ip":"10.1.0.1"}],"ports":[{"port":80}]}]`, `"subsets":[]`, `"subsets":null`,
		`"subsets":[{"notReadyAddresses":[{"ip":"10.1.0.2","hostname":""}],"ports":[{"name":"a","port":80},{"name":"b",` +
			`"port":81,"protocol":"UDP"}]}]`,
		`"subsets":[{"addresses":[{"ip":"10.1.0.4"},{"ip":"10.1.0.3","targetRef":{"kind":"Pod","name":"p",` +
			`"uid":""}}],"ports":[]}]`,
	}},
	{apiVersion: "v1", kind: "Event", path: "/api/v1" + inDefault + "events", bodies: events},
	{apiVersion: "v1", kind: "Namespace", path: "/api/v1/namespaces", bodies: []string{
		`"spec":{}`, `"spec":{"finalizers":[]}`, `"spec":null`, `"spec":{"finalizers":["kubernetes"]}`,
		`"spec":{"finalizers":["example.com/f"]}`, `"status":{}`,
	}},
	{apiVersion: "v1", kind: "Node", path: "/api/v1/nodes", bodies: []string{
		`"spec":{}`, `"spec":{"podCIDR":"10.2.0.0/24"}`, `"spec":{"podCIDRs":["10.2.1.0/24"],"unschedulable":false}`,
		`"spec":{"providerID":"","unschedulable":false}`,
		`"spec":{"configSource":null,"podCIDR":"10.2.2.0/24","podCIDRs":["10.2.2.0/24"]}`,
		`"status":{"capacity":{"cpu":"1000m","memory":"1024Mi"}}`,
	}},
	{apiVersion: "v1", kind: "PersistentVolume", path: "/api/v1/persistentvolumes", bodies: []string{
		`"spec":{` + volume + `,"hostPath":{"path":"/p"}}`,
		`"spec":{` + volume + `,"iscsi":{"targetPortal":"10.0.0.1",` +
			`"iqn":"iqn.2001-04.com.example:storage","lun":0}}`,
		`"spec":{"capacity":{"storage":"1024Mi"},"accessModes":["ReadWriteOnce"],"storageClassName":"","mountOptions":[],` +
			`"rbd":{"monitors":["a"],"image":"i"}}`,
		`"spec":{` + volume + `,"azureDisk":{"diskName":"d","diskURI":"https://example.com/d"}}`,
		`"spec":{` + volume + `,"claimRef":{"namespace":"default","name":"c"},"csi":{"driver":"d.example.com",` +
			`"volumeHandle":"h","readOnly":false,"volumeAttributes":{}}}`,
		`"spec":{` + volume + `,"scaleIO":{"gateway":"g","system":"s","volumeName":"v","secretRef":{"name":"s",` +
			`"namespace":"n"}}}`,
	}},
	{apiVersion: "v1", kind: "ResourceQuota", path: "/api/v1" + inDefault + "resourcequotas", bodies: []string{
		`"spec":{}`, `"spec":{"hard":{"configmaps":"10k"}}`,
		`"spec":{"hard":{"limits.memory":"1024Gi","limits.cpu":"1000000m"}}`,
		`"spec":{"hard":{"pods":1000},"scopes":["BestEffort"]}`, `"spec":{"hard":{"pods":"1000"},"scopeSelector":{` +
			`"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["p"]}]}}`,
		`"spec":{"hard":{"requests.cpu":"1000.5"},"scopes":[]}`,
	}},
	{apiVersion: "v1", kind: "ServiceAccount", path: "/api/v1" + inDefault + "serviceaccounts", bodies: []string{
		`"secrets":[{"name":"s"}]`, `"secrets":[{"name":"s","namespace":"n","kind":"Secret"}]`, `"secrets":[]`,
		`"imagePullSecrets":[{"name":"p"},{"name":""}]`,
		`"automountServiceAccountToken":false`, `"secrets":[{"name":"s","namespace":""}],"imagePullSecrets":null`,
	}},
	{apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition",
		path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", bodies: definitions},
	{apiVersion: "apiregistration.k8s.io/v1", kind: "APIService",
		path: "/apis/apiregistration.k8s.io/v1/apiservices", bodies: apiServices},
	{apiVersion: "apps/v1", kind: "ControllerRevision",
		path: "/apis/apps/v1" + inDefault + "controllerrevisions", bodies: []string{
			`"revision":1,"data":{"a":{"b":""}}`, `"revision":0,"data":{}`,
			`"revision":2,"data":{"spec":{"list":[],"map":{}}}`,
			`"revision":3,"data":{"a":null,"n":1.50}`, `"revision":4,"data":{"":{}}`,
		}},
	{apiVersion: "certificates.k8s.io/v1", kind: "CertificateSigningRequest",
		path: "/apis/certificates.k8s.io/v1/certificatesigningrequests", bodies: signingRequests},
	{apiVersion: "certificates.k8s.io/v1", kind: "ClusterTrustBundle",
		path: "/apis/certificates.k8s.io/v1/clustertrustbundles", bodies: []string{
			`"spec":{"trustBundle":"` + trustBundle + `"}`, `"spec":{"signerName":"","trustBundle":"` + trustBundle + `"}`,
			`"spec":{"trustBundle":"` + trustBundle + `\n"}`, `"spec":{"trustBundle":"` + trustBundle + `\n\n"}`,
			`"spec":{"signerName":null,"trustBundle":"` + trustBundle + `"}`,
		}},
	{apiVersion: "certificates.k8s.io/v1", kind: "PodCertificateRequest",
		path: "/apis/certificates.k8s.io/v1" + inDefault + "podcertificaterequests", bodies: []string{
			`"spec":{` + podCertificate + `}`, `"spec":{` + podCertificate + `,"maxExpirationSeconds":3600}`,
			`"spec":{` + podCertificate + `,"unverifiedUserAnnotations":{}}`,
			`"spec":{` + podCertificate + `,"unverifiedUserAnnotations":null}`,
			`"spec":{` + podCertificate + `,"unverifiedUserAnnotations":{"example.com/a":""}}`,
		}},
	{apiVersion: "coordination.k8s.io/v1", kind: "Lease",
		path: "/apis/coordination.k8s.io/v1" + inDefault + "leases", bodies: []string{
			`"spec":{}`, `"spec":{"holderIdentity":"h","leaseDurationSeconds":15}`, `"spec":{"holderIdentity":""}`,
			`"spec":{"holderIdentity":"h","renewTime":"2026-01-02T03:04:05.000000Z"}`,
			`"spec":{"holderIdentity":"h","acquireTime":"2026-01-02T03:04:05.500000+01:00","leaseTransitions":0}`,
		}},
	{apiVersion: "events.k8s.io/v1", kind: "Event",
		path: "/apis/events.k8s.io/v1" + inDefault + "events", bodies: newEvents},
	{apiVersion: "flowcontrol.apiserver.k8s.io/v1", kind: "FlowSchema",
		path: "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", bodies: flowSchemas},
	{apiVersion: "flowcontrol.apiserver.k8s.io/v1", kind: "PriorityLevelConfiguration",
		path: "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", bodies: []string{
			`"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}`,
			`"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Queue","queuing":{"handSize":8}}}}`,
			`"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Queue","queuing":{"queues":32}},"lendablePercent":0}}`,
			`"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":0,"limitResponse":{"type":"Reject"}}}`,
			`"spec":{"type":"Limited","limited":{"borrowingLimitPercent":10,"limitResponse":{"type":"Queue","queuing":{}}}}`,
		}},
	{apiVersion: "policy/v1", kind: "PodDisruptionBudget",
		path: "/apis/policy/v1" + inDefault + "poddisruptionbudgets", bodies: []string{
			`"spec":{"minAvailable":1}`, `"spec":{"minAvailable":"50%","selector":{}}`,
			`"spec":{"maxUnavailable":0,"selector":{"matchLabels":{"a":""}}}`,
			`"spec":{"maxUnavailable":1,"selector":{"matchLabels":{},"matchExpressions":[]}}`,
			`"spec":{"maxUnavailable":"0%","unhealthyPodEvictionPolicy":"AlwaysAllow"}`, `"spec":{}`,
		}},
	{apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role",
		path:   "/apis/rbac.authorization.k8s.io/v1" + inDefault + "roles",
		bodies: roles},
	{apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole",
		path: "/apis/rbac.authorization.k8s.io/v1/clusterroles",
		bodies: append(roles, `"rules":null,"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":""}}]}`,
			`"rules":[{"nonResourceURLs":["/x"],"verbs":["get"]}],"aggregationRule":null`)},
	{apiVersion: "autoscaling/v1", kind: "HorizontalPodAutoscaler",
		path: "/apis/autoscaling/v1" + inDefault + "horizontalpodautoscalers", bodies: []string{
			`"spec":{` + scaled + `}`, `"spec":{` + scaled + `,"targetCPUUtilizationPercentage":50}`,
			`"spec":{` + scaled + `,"minReplicas":1}`, `"spec":{` + scaled + `,"minReplicas":2}`,
			`"spec":{"maxReplicas":3,"minReplicas":null,"scaleTargetRef":{"kind":"ReplicationController","name":"d",` +
				`"apiVersion":"v1"}}`,
		}},
}

const volume = `"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"]`

var events = []string{
	`"involvedObject":{"namespace":"default"}`,
	`"involvedObject":{"namespace":"default","kind":"Pod","name":""},"source":{}`,
	`"involvedObject":{"namespace":"default","uid":""},"count":0,"type":""`,
	`"involvedObject":{"namespace":"default"},"firstTimestamp":"2026-01-02T03:04:05Z","lastTimestamp":null,"message":""`,
	`"involvedObject":{"namespace":"default"},"eventTime":null,"series":null,"related":{}`,
}

var newEvents = []string{
	newEvent, newEvent + `,"note":"","regarding":{}`, newEvent + `,"deprecatedCount":0,"deprecatedSource":{}`,
	newEvent + `,"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:06.500000Z"}`,
	newEvent + `,"regarding":{"kind":"Pod","namespace":"default","name":"p","uid":""},"related":null`,
}

const newEvent = `"eventTime":"2026-01-02T03:04:05.000001Z","action":"a","reason":"r","type":"Normal",` +
	`"reportingController":"example.com/c","reportingInstance":"i"`

// definitions have another name each, which is in their bodies too.
var definitions = []string{
	definition(0, ``, `{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}`),
	definition(1, `"conversion":{"strategy":"None"},`,
		`{"name":"v1","served":true,"storage":true,"deprecated":false,`+
			`"additionalPrinterColumns":[{"name":"A","type":"integer","jsonPath":".spec.a","priority":0,"description":""}],`+
			`"schema":{"openAPIV3Schema":{"type":"object","description":"","properties":{"spec":{"type":"object",`+
			`"nullable":false,`+
			`"properties":{"description":{"type":"string","default":""},"a":{"type":"integer","default":0,"title":""}},`+
			`"x-kubernetes-preserve-unknown-fields":true}}}}}`),
	definition(2, `"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],`+
		`"clientConfig":{"service":{`+
		`"namespace":"n","name":"s"}}}},`, `{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{`+
		`"type":"object","x-kubernetes-validations":[{"rule":"true","message":""}]}}}`),
	definition(3, `"preserveUnknownFields":false,`,
		`{"name":"v1","served":true,"storage":true,"additionalPrinterColumns":[],`+
			`"subresources":{"status":{},"scale":{"specReplicasPath":".spec.r","statusReplicasPath":".status.r"}},`+
			`"selectableFields":[],"schema":{"openAPIV3Schema":{"type":"object","required":[],"properties":{}}}}`),
	definition(4, ``,
		`{"name":"v1","served":true,"storage":true,"subresources":{},"schema":{"openAPIV3Schema":{"type":"object",`+
			`"properties":{"e":{"type":"string","enum":["","a"],"nullable":true},"l":{"type":"array","items":{"type":"object",`+
			`"properties":{"k":{"type":"string","default":""}}},"x-kubernetes-list-type":"map",`+
			`"x-kubernetes-list-map-keys":["k"]},`+
			`"m":{"type":"object","additionalProperties":{"type":"string"},"default":{}},"n":{"type":"number","minimum":0,`+
			`"exclusiveMinimum":false},"i":{"anyOf":[{"type":"integer"},{"type":"string"}],`+
			`"x-kubernetes-int-or-string":true}}}}},`+
			`{"name":"v2","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}`),
}

// definition returns the body of the definition of an index.
func definition(i int, more, versions string) string {
	name := string(rune('0' + i))
	return `"spec":{"group":"example.com","scope":"Namespaced",` + more + `"names":{"plural":"o` + name + `s",` +
		`"kind":"O` + name +
		`"},"versions":[` + versions + `]}`
}

var apiServices = []string{
	apiService(0, `"service":{"namespace":"n","name":"s"}`), apiService(1, `"service":{"namespace":"n","name":"s",`+
		`"port":443}`),
	apiService(2, `"service":{"namespace":"n","name":"s"},"caBundle":""`), apiService(3,
		`"service":{"namespace":"n","name":"s"},`+
			`"insecureSkipTLSVerify":true`), apiService(4, `"insecureSkipTLSVerify":false,"service":{"namespace":"n",`+
		`"name":"s","port":8443}`),
}

func apiService(i int, more string) string {
	return `"spec":{"group":"o` + string(rune('0'+i)) + `.example.com","version":"v1","groupPriorityMinimum":10,` +
		`"versionPriority":10,` +
		more + `}`
}

// signingRequest is PEM in base64, for the name CN=example.
const signingRequest = "" +
	"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlITU1IUUNBUUF3RWpFUU1BNEdBMVVFQXd3SFpYaGhiWEJzWlRC" +
	"Wk1CTUdCeXFHU000OUFnRUdDQ3FHU000OQpBd0VIQTBJQUJGbGtPbU1zMXBsVHBZSzZpOEFkN2xlSnJpMHRNT0V1b3kvbVpNUGhw" +
	"cllKWXUxVFMvalpOZVkvCnBEcUVFa1RaZVV6SytkSXB4eDc1cENpUXMrVnFPVjJnQURBS0JnZ3Foa2pPUFFRREFnTklBREJGQWlF" +
	"QXlhRlIKWGk1ZngrcTZGV2lUblpBaUdQY0x2UlcydjBHeUpDZTlZdk5Vd2JrQ0lFaXRKNWNmc2g2ME9oczhKbDFvWEFSVQpjNjk5" +
	"ZTFRaVZYNk9kdnppYnFvUAotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K"

var signingRequests = []string{
	`"spec":{"request":"` + signingRequest + `","signerName":"example.com/s","usages":["digital signature"]}`,
	`"spec":{"request":"` + signingRequest + `","signerName":"example.com/s","usages":["server auth","client auth"]}`,
	`"spec":{"request":"` + signingRequest + `","signerName":"example.com/s","usages":["client auth"],` +
		`"expirationSeconds":600}`,
	`"spec":{"request":"` + signingRequest + `","signerName":"example.com/s","usages":["client auth"],"groups":[],` +
		`"extra":{}}`,
	`"spec":{"request":"` + signingRequest + `","signerName":"example.com/s","usages":["client auth"],` +
		`"username":"","uid":""}`,
}

// trustBundle is a certificate of an authority, and podCertificate the required fields of a PodCertificateRequest.
const (
	trustBundle = `-----BEGIN CERTIFICATE-----\nMIIBMDCB46ADAgECAhQQ4VK9WnzbJryGXhurD21o6Ysz/zAFBgMrZXAwDTELMAkG\n` +
		`A1UEAwwCY2EwIBcNMjYxMTI0MTAyMDM0WhgPMjEyNjEwMzExMDIwMzRaMA0xCzAJ\n` +
		`BgNVBAMMAmNhMCowBQYDK2VwAyEAcHoCeBGhxmjwi7PnbvsI0FWSZlMMVW74c320\n` +
		`xqsymNijUzBRMB0GA1UdDgQWBBTk0ovsXxIhJlsl4BTAlcGJLGwbwDAfBgNVHSME\n` +
		`GDAWgBTk0ovsXxIhJlsl4BTAlcGJLGwbwDAPBgNVHRMBAf8EBTADAQH/MAUGAytl\n` +
		`cANBAJnzBZYaXf3KbsQTFThjEJncfqVa8MAJpyQNLRkc/GFSOyV4sjpzsaVnah/i\n` +
		`Mzr1bzszIlbyvBIDhrggIYWCLAw=\n-----END CERTIFICATE-----`
	podCertificate = `"signerName":"example.com/s","podName":"p","podUID":"u","serviceAccountName":"s",` +
		`"serviceAccountUID":"v","nodeName":"n","nodeUID":"w","stubPKCS10Request":"` + stubRequest + `"`
	stubRequest = "MH8wMwIBADAAMCowBQYDK2VwAyEATKAEc1nFjnWC46POdLfUmd5iqQzDs2KZF6fuaRubh9igADAFBgMrZXADQQCW/B" +
		"Mm7wFz/+dpZLtGvONB2kbjehmLlC+11nZ+7bf7e48p7whRCvBUMsazfKTDdRM+hIiZqKhomP0mXaZVjIgA"
)

var flowSchemas = []string{
	`"spec":{"priorityLevelConfiguration":{"name":"global-default"}}`,
	`"spec":{"priorityLevelConfiguration":{"name":"global-default"},"matchingPrecedence":1000,"rules":[]}`,
	`"spec":{"priorityLevelConfiguration":{"name":"global-default"},"distinguisherMethod":{"type":"ByUser"},` +
		`"rules":[{"subjects":[` +
		`{"kind":"User","user":{"name":"u"}}],"resourceRules":[{"verbs":["*"],"apiGroups":[""],"resources":["pods"],` +
		`"namespaces":["*"]}]}]}`,
	`"spec":{"priorityLevelConfiguration":{"name":"global-default"},"rules":[{"subjects":[{"kind":"Group",` +
		`"group":{"name":"g"}}],` +
		`"resourceRules":[{"verbs":["get"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":[]}]}]}`,
	`"spec":{"priorityLevelConfiguration":{"name":"global-default"},"matchingPrecedence":7,"rules":[{"subjects":[{` +
		`"kind":"ServiceAccount","serviceAccount":{"name":"*","namespace":"n"}}],"nonResourceRules":[{"verbs":["get"],` +
		`"nonResourceURLs":["/x"]}],"resourceRules":[]}]}`,
}

var roles = []string{
	`"rules":[]`, `"rules":null`,
	`"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"],"resourceNames":[]}]`,
	`"rules":[{"apiGroups":["apps"],"resources":["deployments","deployments/scale"],"verbs":["*"]},{"apiGroups":[""],` +
		`"resources":["configmaps"],"resourceNames":["c"],"verbs":["get","get"]}]`,
	`"rules":[{"apiGroups":["","apps"],"resources":["*"],"verbs":["list"]}]`,
}

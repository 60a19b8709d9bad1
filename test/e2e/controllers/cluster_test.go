// Package controllers tests a cluster in which a kube-controller-manager runs beside the API server: it checks the work
// of the controllers, and that the controllers finish their work.
//
//	go run ./hosts/run-all --only controllers
//
// The tests need a cluster without nodes. KUBECONFIG_OF_CONTROLLERS is the path of its kubeconfig; without it, the
// tests skip.
package controllers

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
)

// TestNamespace checks that a Namespace gets its default ServiceAccount and the ConfigMap with the cluster's CA, and
// that its deletion finishes, with all its contents.
func TestNamespace(t *testing.T) {
	s := newSpace(t)
	await(t, "there is the default ServiceAccount", func() (bool, error) {
		_, err := s.CoreV1().ServiceAccounts(s.name).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil, err
	})
	await(t, "there is the CA", func() (bool, error) {
		_, err := s.CoreV1().ConfigMaps(s.name).Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		return err == nil, err
	})
	_, err := s.AppsV1().Deployments(s.name).Create(t.Context(), deployment(1), metav1.CreateOptions{})
	require.NoError(t, err)
	s.waitForPods(t, 1)
	require.NoError(t, s.CoreV1().Namespaces().Delete(t.Context(), s.name, metav1.DeleteOptions{}))
	await(t, "the Namespace is deleted", func() (bool, error) {
		n, err := s.CoreV1().Namespaces().Get(t.Context(), s.name, metav1.GetOptions{})
		if err == nil {
			require.Equal(t, corev1.NamespaceTerminating, n.Status.Phase)
		}
		return apierrors.IsNotFound(err), nil
	})
	pods, err := s.CoreV1().Pods(s.name).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, pods.Items)
}

// TestEndpoints checks that a Service gets Endpoints and an EndpointSlice with its ready Pods.
func TestEndpoints(t *testing.T) {
	s := newSpace(t)
	_, err := s.CoreV1().Services(s.name).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.AppsV1().Deployments(s.name).Create(t.Context(), deployment(2), metav1.CreateOptions{})
	require.NoError(t, err)
	s.createNode(t)
	s.waitForPods(t, 2)
	s.bindPods(t)
	s.makePodsReady(t)
	await(t, "the EndpointSlice has both Pods", func() (bool, error) {
		slices, err := s.DiscoveryV1().EndpointSlices(s.name).List(t.Context(),
			metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
		if err != nil || len(slices.Items) != 1 {
			return false, err
		}
		return len(slices.Items[0].Endpoints) == 2 && *slices.Items[0].Ports[0].Port == 8080, nil
	})
	await(t, "the Endpoints have both Pods", func() (bool, error) {
		e, err := s.CoreV1().Endpoints(s.name).Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && len(e.Subsets) == 1 && len(e.Subsets[0].Addresses) == 2, err
	})
}

// TestGarbageCollection checks that dependents are deleted after their owner, before it, or not at all, depending on
// the propagation policy.
func TestGarbageCollection(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	} {
		t.Run(string(policy), func(t *testing.T) {
			s := newSpace(t)
			s.testGarbageCollection(t, policy)
		})
	}
}

func (s space) testGarbageCollection(t *testing.T, policy metav1.DeletionPropagation) {
	deployments := s.AppsV1().Deployments(s.name)
	_, err := deployments.Create(t.Context(), deployment(1), metav1.CreateOptions{})
	require.NoError(t, err)
	s.waitForPods(t, 1)
	require.NoError(t, deployments.Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: &policy}))
	await(t, "the Deployment is deleted", func() (bool, error) {
		_, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	sets, err := s.AppsV1().ReplicaSets(s.name).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	switch policy {
	case metav1.DeletePropagationOrphan:
		require.Len(t, sets.Items, 1)
		require.Empty(t, sets.Items[0].OwnerReferences)
		s.waitForPods(t, 1)
	case metav1.DeletePropagationForeground:
		require.Empty(t, sets.Items)
		fallthrough
	default:
		s.waitForPods(t, 0)
	}
}

// TestGarbageCollectionOfCustomResources checks that the garbage collector finds the kinds of CustomResourceDefinitions
// by discovery.
func TestGarbageCollectionOfCustomResources(t *testing.T) {
	s := newSpace(t)
	client, err := dynamic.NewForConfig(s.config)
	require.NoError(t, err)
	owner := s.newCustomResource(t, client)
	_, err = s.CoreV1().ConfigMaps(s.name).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "example.com/v1", Kind: "Shop", Name: owner.GetName(), UID: owner.GetUID(),
		}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(
		t,
		client.Resource(shops).Namespace(s.name).Delete(t.Context(), owner.GetName(), metav1.DeleteOptions{}),
	)
	await(t, "the ConfigMap is deleted with its owner", func() (bool, error) {
		_, err := s.CoreV1().ConfigMaps(s.name).Get(t.Context(), "settings", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

// TestVolumes checks that a claim is bound to a volume, that both are protected while they are in use, and that their
// deletion finishes.
func TestVolumes(t *testing.T) {
	s := newSpace(t)
	volumes, claims := s.CoreV1().PersistentVolumes(), s.CoreV1().PersistentVolumeClaims(s.name)
	_, err := volumes.Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, StorageClassName: s.name,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/data"},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = claims.Create(t.Context(), claim(s.name), metav1.CreateOptions{})
	require.NoError(t, err)
	await(t, "the claim is bound", func() (bool, error) {
		c, err := claims.Get(t.Context(), "data", metav1.GetOptions{})
		return err == nil && c.Status.Phase == corev1.ClaimBound, err
	})
	require.NoError(t, volumes.Delete(t.Context(), s.name, metav1.DeleteOptions{}))
	v, err := volumes.Get(t.Context(), s.name, metav1.GetOptions{})
	require.NoError(t, err, "a bound volume stays")
	require.Contains(t, v.Finalizers, "kubernetes.io/pv-protection")
	require.NoError(t, claims.Delete(t.Context(), "data", metav1.DeleteOptions{}))
	await(t, "both are deleted", func() (bool, error) {
		_, claimErr := claims.Get(t.Context(), "data", metav1.GetOptions{})
		_, volumeErr := volumes.Get(t.Context(), s.name, metav1.GetOptions{})
		return apierrors.IsNotFound(claimErr) && apierrors.IsNotFound(volumeErr), nil
	})
}

func claim(class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
}

// TestQuota checks that the status of a ResourceQuota counts the existing objects of a Namespace. Admission counts new
// objects.
func TestQuota(t *testing.T) {
	s := newSpace(t)
	quotas := s.CoreV1().ResourceQuotas(s.name)
	_, err := s.CoreV1().Secrets(s.name).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "few"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/secrets": resource.MustParse("5")}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	await(t, "the quota counts", func() (bool, error) {
		q, err := quotas.Get(t.Context(), "few", metav1.GetOptions{})
		return err == nil && q.Status.Used.Name("count/secrets", resource.DecimalSI).String() == "1", err
	})
}

// TestAggregatedRole checks that the controller sets the rules of an aggregated ClusterRole by server-side apply.
func TestAggregatedRole(t *testing.T) {
	s := newSpace(t)
	roles := s.RbacV1().ClusterRoles()
	label := map[string]string{"example.com/aggregate": s.name}
	rule := rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"shops"}, Verbs: []string{"get"}}
	for _, r := range []*rbacv1.ClusterRole{
		{
			ObjectMeta: metav1.ObjectMeta{Name: s.name},
			AggregationRule: &rbacv1.AggregationRule{
				ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: label}},
			},
		},
		{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-part", Labels: label}, Rules: []rbacv1.PolicyRule{rule}},
	} {
		_, err := roles.Create(t.Context(), r, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	await(t, "the aggregated role has the rule", func() (bool, error) {
		r, err := roles.Get(t.Context(), s.name, metav1.GetOptions{})
		return err == nil && len(r.Rules) == 1, err
	})
	r, err := roles.Get(t.Context(), s.name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, []rbacv1.PolicyRule{rule}, r.Rules)
	require.Equal(t, "clusterrole-aggregation-controller", r.ManagedFields[0].Manager)
	require.Equal(t, metav1.ManagedFieldsOperationApply, r.ManagedFields[0].Operation)
}

// TestCertificate checks that an approved CertificateSigningRequest gets its certificate.
func TestCertificate(t *testing.T) {
	s := newSpace(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "ann"},
	}, key)
	require.NoError(t, err)
	requests := s.CertificatesV1().CertificateSigningRequests()
	csr, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: []certificatesv1.KeyUsage{"client auth"},
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
	})
	_, err = requests.UpdateApproval(t.Context(), s.name, csr, metav1.UpdateOptions{})
	require.NoError(t, err)
	await(t, "it gets its certificate", func() (bool, error) {
		csr, err := requests.Get(t.Context(), s.name, metav1.GetOptions{})
		return err == nil && len(csr.Status.Certificate) > 0, err
	})
}

// TestTokenSecret checks that a Secret for a ServiceAccount gets its token.
func TestTokenSecret(t *testing.T) {
	s := newSpace(t)
	await(t, "there is the default ServiceAccount", func() (bool, error) {
		_, err := s.CoreV1().ServiceAccounts(s.name).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil, err
	})
	_, err := s.CoreV1().Secrets(s.name).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	await(t, "the Secret has a token", func() (bool, error) {
		secret, err := s.CoreV1().Secrets(s.name).Get(t.Context(), "token", metav1.GetOptions{})
		return err == nil && len(secret.Data[corev1.ServiceAccountTokenKey]) > 0, err
	})
}

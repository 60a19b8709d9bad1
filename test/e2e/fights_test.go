package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit/policy"
	auditlog "k8s.io/apiserver/plugin/pkg/audit/log"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/tenure-ssa/tenure/apiserver"
)

const (
	watchedObjects = 200
	calmWriters    = 20
)

// fightFields are the fields that the two controllers fight over.
var fightFields = []string{
	"web-0 .spec.replicas",
	`web-1 .metadata.annotations["example.com/owner"]`,
	`web-2 .spec.template.spec.containers[name="main"].image`,
}

// fighter is a controller that sets a field of three Deployments: the replicas of one, an annotation of another, and an
// image of the third. If scales is true, it sets the replicas through the scale subresource, like an autoscaler.
type fighter struct {
	client.Client
	name     string
	replicas int32
	image    string
	scales   bool
}

func (f *fighter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	live := &appsv1.Deployment{}
	if err := f.Get(ctx, request.NamespacedName, live); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	time.Sleep(20 * time.Millisecond) // the time that its work takes
	owner := []client.ApplyOption{client.FieldOwner(f.name), client.ForceOwnership}
	switch intent := appsv1apply.Deployment(live.Name, live.Namespace); live.Name {
	case "web-0":
		if *live.Spec.Replicas == f.replicas {
			return ctrl.Result{}, nil
		}
		if f.scales {
			scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: live.Name, Namespace: live.Namespace},
				Spec: autoscalingv1.ScaleSpec{Replicas: f.replicas}}
			return ctrl.Result{}, f.SubResource("scale").
				Update(ctx, live, client.WithSubResourceBody(scale), client.FieldOwner(f.name))
		}
		return ctrl.Result{}, f.Apply(ctx, intent.WithSpec(appsv1apply.DeploymentSpec().WithReplicas(f.replicas)), owner...)
	case "web-1":
		if live.Annotations["example.com/owner"] == f.name {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, f.Apply(ctx, intent.WithAnnotations(map[string]string{"example.com/owner": f.name}), owner...)
	case "web-2":
		if live.Spec.Template.Spec.Containers[0].Image == f.image {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, f.Apply(ctx, deployment(live.Name, 1, f.image), owner...)
	}
	return ctrl.Result{}, nil
}

// startFighter runs a fighter in its own manager.
func startFighter(t *testing.T, ctx context.Context, config *rest.Config, f *fighter) {
	t.Helper()
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme.Scheme, Metrics: server.Options{BindAddress: "0"},
		Controller: anyName})
	require.NoError(t, err)
	f.Client = manager.GetClient()
	require.NoError(t, ctrl.NewControllerManagedBy(manager).Named(f.name).For(&appsv1.Deployment{}).
		WithEventFilter(predicate.NewPredicateFuncs(func(o client.Object) bool {
			return o.GetName() == "web-0" || o.GetName() == "web-1" || o.GetName() == "web-2"
		})).Complete(f))
	done := make(chan error, 1)
	go func() { done <- manager.Start(ctx) }()
	t.Cleanup(func() { require.NoError(t, <-done) })
}

// writeCalmly writes to the objects of one writer until ctx ends. It treats each object in one way: a rollout that
// progresses, an autoscaler that scales, a status that changes, or a handover to another manager.
func writeCalmly(ctx context.Context, c client.Client, writer int, rounds chan<- int) error {
	name := fmt.Sprintf("writer-%d", writer)
	for round := 0; ctx.Err() == nil; round++ {
		for i := writer + calmWriters; i < watchedObjects; i += calmWriters {
			object := fmt.Sprintf("web-%d", i)
			var err error
			switch live := (&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: object, Namespace: "default"}}); writer % 4 {
			case 0:
				err = c.Apply(
					ctx,
					deployment(object, 1, fmt.Sprint("image:", round)),
					client.FieldOwner(name),
					client.ForceOwnership,
				)
			case 1:
				scale := &autoscalingv1.Scale{
					ObjectMeta: live.ObjectMeta,
					Spec:       autoscalingv1.ScaleSpec{Replicas: int32(round % 7)},
				}
				err = c.SubResource("scale").Update(ctx, live, client.WithSubResourceBody(scale), client.FieldOwner(name))
			case 2:
				patch := fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":2,"readyReplicas":%d}}`, round+1, round%3)
				err = c.Status().
					Patch(ctx, live, client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner(name))
			case 3:
				to := name
				if round > 2 {
					to += "-successor"
				}
				err = c.Apply(
					ctx,
					appsv1apply.Deployment(object, "default").WithAnnotations(map[string]string{"round": fmt.Sprint(round)}),
					client.FieldOwner(to),
					client.ForceOwnership,
				)
			}
			if err != nil && ctx.Err() == nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		select {
		case rounds <- round:
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
	return nil
}

// foundFields reads findings from printed lines, and requires that all of them are fights.
type foundFields struct {
	mu     sync.Mutex
	fields map[string]bool
	others []string
}

func (f *foundFields) read(in io.Reader) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var finding struct{ Kind, Name, Field string }
		err := json.Unmarshal(lines.Bytes(), &finding)
		f.mu.Lock()
		if err != nil || finding.Kind != "Fight" {
			f.others = append(f.others, lines.Text())
		} else {
			f.fields[finding.Name+" "+finding.Field] = true
		}
		f.mu.Unlock()
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.others = append(f.others, err.Error())
	}
}

func (f *foundFields) sorted() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.fields))
}

// lockedLog is an audit log for concurrent requests.
type lockedLog struct {
	mu sync.Mutex
	*os.File
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.File.Write(p)
}

// TestFights lets two controllers fight over three fields among 200 Deployments, which 20 other writers update without
// fights. tenure watch must name exactly these three fields, live and from the audit log of the same run.
func TestFights(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	tenure := filepath.Join(t.TempDir(), "tenure")
	program(t, "github.com/tenure-ssa/tenure/cmd/tenure", tenure)
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "audit.log"))
	require.NoError(t, err)
	defer log.Close()
	everything := policy.NewPolicyRuleEvaluator(&auditinternal.Policy{
		OmitStages: []auditinternal.Stage{auditinternal.StageRequestReceived},
		Rules:      []auditinternal.PolicyRule{{Level: auditinternal.LevelRequestResponse}},
	})
	kubeconfig := filepath.Join(dir, "kubeconfig")
	config := start(t, apiserver.Options{Kubeconfig: kubeconfig, Audit: apiserver.Audit{
		Policy: everything, Sink: auditlog.NewBackend(&lockedLog{File: log}, auditlog.FormatJson, auditv1.SchemeGroupVersion),
	}}).Config()
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	for i := range watchedObjects {
		require.NoError(
			t,
			c.Apply(t.Context(), deployment(fmt.Sprintf("web-%d", i), 1, "image:0"), client.FieldOwner("install")),
		)
	}

	watch := exec.Command(
		tenure,
		"watch",
		"-A",
		"-o",
		"json",
		"--kubeconfig",
		kubeconfig,
		"--cache-dir",
		filepath.Join(dir, "cache"),
	)
	stdout, err := watch.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	watch.Stderr = &errs
	require.NoError(t, watch.Start())
	found := &foundFields{fields: map[string]bool{}}
	readAll := make(chan struct{})
	go func() { defer close(readAll); found.read(stdout) }()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := time.Now()
	startFighter(t, ctx, config, &fighter{name: "gitops", replicas: 2, image: "image:git"})
	startFighter(t, ctx, config, &fighter{name: "autoscaler", replicas: 5, image: "image:mesh", scales: true})
	rounds := make(chan int)
	failed := make(chan error, calmWriters)
	for writer := range calmWriters {
		go func() { failed <- writeCalmly(ctx, c, writer, rounds) }()
	}
	// After the fights are found, the calm writers continue for some rounds.
	all := 0
	for calm := 0; calm < 2*calmWriters; {
		select {
		case err := <-failed:
			require.NoError(t, err)
		case <-rounds:
			if all == len(fightFields) {
				calm++
			}
		case <-time.After(10 * time.Millisecond):
		}
		if n := len(found.sorted()); n != all {
			all = n
			t.Logf("%d fights found after %s", n, time.Since(begin).Round(100*time.Millisecond))
		}
		require.Less(t, time.Since(begin), 5*time.Minute, "%q, %s", found.sorted(), errs.String())
	}
	cancel()
	require.NoError(t, watch.Process.Signal(os.Interrupt))
	<-readAll
	var exit *exec.ExitError
	require.ErrorAs(t, watch.Wait(), &exit)
	require.Equal(t, 1, exit.ExitCode(), errs.String())
	require.Equal(t, fightFields, found.sorted())
	require.Empty(t, found.others)

	past := exec.Command(tenure, "watch", "--audit-log", log.Name(), "-o", "json")
	out, err := past.Output()
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode())
	found = &foundFields{fields: map[string]bool{}}
	found.read(bytes.NewReader(out))
	require.Equal(t, fightFields, found.sorted())
	require.Empty(t, found.others)
}

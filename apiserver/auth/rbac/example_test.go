package rbac_test

import (
	"context"
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/auth/rbac"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// An Authorizer is an authorizer of k8s.io/apiserver and an Observer of this server.
var (
	_ apiserver.Observer = (*rbac.Authorizer)(nil)
)

// A user without roles may read the server's version, but no objects.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := memory.New(memory.Options{})
	defer store.Close()
	authorizer, err := rbac.New(ctx, store)
	if err != nil {
		log.Fatal(err)
	}
	tokens := tokenfile.New(map[string]*user.DefaultInfo{"secret": {Name: "ann"}})
	server, err := apiserver.New(ctx, apiserver.Options{
		Store: store, Authorizer: authorizer, Authenticator: bearertoken.New(tokens),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	config := server.LoopbackConfig()
	config.BearerToken = "secret"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	version, err := client.Discovery().ServerVersion()
	fmt.Println(version.Major, err)
	_, err = client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	fmt.Println(err)
	// Output:
	// 1 <nil>
	// pods is forbidden: User "ann" cannot list resource "pods" in API group "" in the namespace "default"
}

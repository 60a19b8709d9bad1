// Package program is what the programs of the benchmark do: one apply to a server in their own process.
package program

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/apiserver"
)

const intent = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"app":"web"}},"spec":{
"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{
"containers":[{"name":"web","image":"nginx:1.29","ports":[{"containerPort":80}],
"resources":{"requests":{"cpu":"100m","memory":"64Mi"}},
"env":[{"name":"POD","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}]}}}}`

// Run applies a Deployment to a new server, and prints the status.
func Run(options apiserver.Options) {
	options.Token = "token"
	server, err := apiserver.New(context.Background(), options)
	if err != nil {
		log.Fatal(err)
	}
	config := server.LoopbackConfig()
	request, err := http.NewRequest(http.MethodPatch,
		config.Host+"/apis/apps/v1/namespaces/default/deployments/web?fieldManager=program", strings.NewReader(intent))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Content-Type", string(types.ApplyPatchType))
	request.Header.Set("Authorization", "Bearer token")
	response, err := config.Transport.RoundTrip(request)
	if err != nil {
		log.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusCreated {
		log.Fatalf("%s: %s: %v", response.Status, body, err)
	}
	fmt.Println(response.Status)
}

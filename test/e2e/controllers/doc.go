// Package controllers tests a cluster on which a kube-controller-manager runs beside the API
// server: what its controllers do there, and that they come to an end.
//
//	go run ./hosts/run-all --only controllers
//
// The tests need a cluster without nodes, of the kubeconfig in KUBECONFIG_OF_CONTROLLERS. They skip without it.
package controllers

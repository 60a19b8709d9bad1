// Package e2e tests the API server with real clients: kubectl, client-go and
// controller-runtime, and many of them at once against each store.
//
// Some tests last as long as they are told to; by default they are short:
//
//	E2E_DURATION=1m E2E_KILLS=20 go test ./test/e2e -v -timeout 1h -run 'NothingLost|Killed|EtcdStopped|Servers'
//
// The servers of TestServers are processes, over the etcd in PATH. Only one that orders progress (3.4.31, 3.5.13 or
// newer) shows lists of the watch cache that wait for it.
package e2e

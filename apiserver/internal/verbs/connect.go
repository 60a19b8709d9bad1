package verbs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/proxy"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

// A connecter serves a subresource that connects to a kubelet, a Pod or the endpoints of a Service. There are none
// behind this server. Everything before the connection is as on kube-apiserver, and the response is that of
// kube-apiserver when the connection is refused. The steps are:
//
//	options of the query → admission, CONNECT → permission to create → location → no connection
type connecter struct {
	// isProxy says that any method and any path below the subresource are served. Others are upgraded to a stream.
	isProxy bool
	// location returns the URL to connect to.
	location func(c *Call, options runtime.Object) (*url.URL, error)
}

// connecters are all connecters, by "group/plural/subresource".
var connecters = map[string]connecter{
	"/pods/attach":      {location: (*Call).containerLocation},
	"/pods/exec":        {location: (*Call).containerLocation},
	"/pods/portforward": {location: (*Call).portsLocation},
	"/pods/proxy":       {location: (*Call).podProxyLocation, isProxy: true},
	"/services/proxy":   {location: (*Call).serviceLocation, isProxy: true},
	"/nodes/proxy":      {location: (*Call).nodeProxyLocation, isProxy: true},
}

// connecter returns the connecter of the call's subresource.
func (c *Call) connecter() (connecter, bool) {
	found, ok := connecters[c.Resource.Group+"/"+c.Resource.Plural+"/"+c.Info.Subresource]
	return found, ok && !c.Resource.Custom
}

var (
	streamMethods = []string{http.MethodGet, http.MethodPost}
	proxyMethods  = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodHead, http.MethodOptions}
)

// routeConnect is route for a connecter.
func (c *Call) routeConnect(to connecter) error {
	i, r, methods := c.Info, c.Resource, streamMethods
	if to.isProxy {
		methods = proxyMethods
	}
	switch {
	case !to.isProxy && len(i.Parts) > 3, r.Namespaced != (i.Namespace != ""):
		return response.NotFound()
	case !slices.Contains(methods, c.Request.Method):
		return response.MethodNotAllowed()
	}
	return c.checkKey()
}

// connect serves a CONNECT request.
func (c *Call) connect(to connecter) error {
	query := c.Request.URL.Query()
	if len(query["dryRun"]) > 0 {
		return apierrors.NewBadRequest("dryRun is not supported")
	}
	options := resources.NewConnectOptions(c.Resource.KindOf(c.Info.Subresource))
	if err := resources.DecodeConnectOptions(options, query, c.pathBelow()); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	ctx := c.Request.Context()
	if err := c.admitConnect(ctx, options); err != nil {
		return err
	}
	if !to.isProxy {
		if err := c.authorizeStream(ctx); err != nil {
			return err
		}
	}
	location, err := to.location(c, options)
	if err != nil {
		return err
	}
	responder := &connectResponder{}
	transport := &http.Transport{DialContext: refuse}
	c.writeWarnings()
	proxy.NewUpgradeAwareHandler(location, transport, to.isProxy, !to.isProxy, responder).ServeHTTP(c.Writer, c.Request)
	c.written = responder.err == nil // it redirects an empty path
	return responder.err
}

// authorizeStream checks the permission to create a stream. Browsers, which can't open one by a POST, send a GET.
func (c *Call) authorizeStream(ctx context.Context) error {
	a := Attributes(ctx, c.Info)
	if a.Verb == "create" {
		return nil
	}
	a.Verb = "create"
	decision, reason, err := c.Authorizer.Authorize(ctx, a)
	if err == nil && decision != authorizer.DecisionAllow {
		err = apierrors.NewForbidden(c.Resource.GroupResource(), c.Info.Name, errors.New(reason))
	}
	return err
}

// connectResponder keeps the error of a connection.
type connectResponder struct{ err error }

func (r *connectResponder) Error(_ http.ResponseWriter, _ *http.Request, err error) { r.err = err }

// refuse is the dialer of all connections. It connects to nothing: names and addresses are from objects that any
// client may write.
func refuse(_ context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err == nil && net.ParseIP(host) == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: unknownHost(host)}
	}
	return nil, fmt.Errorf("dial %s %s: connect: connection refused", network, address)
}

func unknownHost(host string) error {
	return &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// pathBelow returns what follows the subresource in the path, with a slash at its start and, if the path has one, at
// its end.
func (c *Call) pathBelow() string {
	path := strings.Join(c.Info.Parts[3:], "/")
	if path != "" && !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	if strings.HasSuffix(c.Info.Path, "/") && !strings.HasSuffix(path, "/") {
		path += "/"
	}
	return path
}

// admitConnect calls admission plugins. Hooks are not called: options are no objects with metadata.
func (c *Call) admitConnect(ctx context.Context, options runtime.Object) error {
	if c.Plugins == nil {
		return nil
	}
	ctx = warning.WithWarningRecorder(ctx, &recorder{call: c})
	objects := c.Plugins.Objects()
	namespace := c.Info.Namespace
	attributes := func() apiadmission.Attributes {
		return apiadmission.NewAttributesRecord(options, nil, options.GetObjectKind().GroupVersionKind(), namespace,
			c.Info.Name, c.Resource.GVR(), c.Info.Subresource, apiadmission.Connect, nil, false, UserOf(ctx))
	}
	if c.Plugins.Mutating() {
		if err := c.Plugins.Admit(ctx, attributes(), objects); err != nil {
			return err
		}
	}
	if c.Plugins.Validating() {
		return c.Plugins.Validate(ctx, attributes(), objects)
	}
	return nil
}

// readOther returns an object of another resource. The error that it does not exist names the resource of the request,
// as on kube-apiserver.
func (c *Call) readOther(resource, name string) (resources.Object, error) {
	ctx := c.Request.Context()
	r := c.Tables.Table().Resource(corev1.SchemeGroupVersion.WithResource(resource))
	if r == nil {
		return nil, response.NotFound()
	}
	other, err := c.internal(ctx, r, c.Info.Namespace, "")
	if err != nil {
		return nil, err
	}
	obj, _, _, err := other.read(ctx, name)
	if err == nil && obj == nil {
		err = apierrors.NewNotFound(c.Resource.GroupResource(), name)
	}
	return obj, err
}

// kubelet returns the host and port of the kubelet of a node.
func (c *Call) kubelet(node string) (host, port string, err error) {
	obj, err := c.readOther("nodes", node)
	if err != nil {
		return "", "", err
	}
	status := obj.(*corev1.Node).Status
	for _, preferred := range preferredAddresses {
		for _, a := range status.Addresses {
			if a.Type == preferred {
				port := status.DaemonEndpoints.KubeletEndpoint.Port
				if port <= 0 {
					port = defaultKubeletPort
				}
				return a.Address, strconv.Itoa(int(port)), nil
			}
		}
	}
	return "", "", fmt.Errorf("no preferred addresses found; known addresses: %v", status.Addresses)
}

const defaultKubeletPort = 10250

// preferredAddresses is the default of kube-apiserver's flag kubelet-preferred-address-types.
var preferredAddresses = []corev1.NodeAddressType{
	corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeInternalIP, corev1.NodeExternalDNS, corev1.NodeExternalIP,
}

// containerLocation is the location of exec and attach.
func (c *Call) containerLocation(options runtime.Object) (*url.URL, error) {
	obj, err := c.readOther("pods", c.Info.Name)
	if err != nil {
		return nil, err
	}
	var container string
	switch o := options.(type) {
	case *corev1.PodExecOptions:
		container = o.Container
	case *corev1.PodAttachOptions:
		container = o.Container
	}
	pod := obj.(*corev1.Pod)
	if _, err := containerOf(pod, container); err != nil {
		return nil, err
	}
	return c.kubeletOf(pod)
}

// portsLocation is the location of portforward.
func (c *Call) portsLocation(runtime.Object) (*url.URL, error) {
	obj, err := c.readOther("pods", c.Info.Name)
	if err != nil {
		return nil, err
	}
	return c.kubeletOf(obj.(*corev1.Pod))
}

// kubeletOf returns the location of the kubelet that runs a Pod. What the kubelet would read of the URL is left out.
func (c *Call) kubeletOf(pod *corev1.Pod) (*url.URL, error) {
	if pod.Spec.NodeName == "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", pod.Name))
	}
	host, port, err := c.kubelet(pod.Spec.NodeName)
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: "https", Host: net.JoinHostPort(host, port)}, nil
}

// containerOf returns the name of a container that exists; for "" that of the only one.
func containerOf(pod *corev1.Pod, name string) (string, error) {
	var names []string
	for _, container := range pod.Spec.InitContainers {
		names = append(names, container.Name)
	}
	for _, container := range pod.Spec.Containers {
		names = append(names, container.Name)
	}
	for _, container := range pod.Spec.EphemeralContainers {
		names = append(names, container.Name)
	}
	switch {
	case name != "" && !slices.Contains(names, name):
		return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.Name))
	case name != "":
		return name, nil
	case len(pod.Spec.Containers) > 1:
		return "", apierrors.NewBadRequest(fmt.Sprintf(
			"a container name must be specified for pod %s, choose one of: %s", pod.Name, names))
	case len(pod.Spec.Containers) == 0:
		return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s", pod.Name))
	}
	return pod.Spec.Containers[0].Name, nil
}

// splitName splits the name of a proxied object: "name", "name:port" or "scheme:name:port".
func (c *Call) splitName(what string) (scheme, name, port string, err error) {
	scheme, name, port, valid := utilnet.SplitSchemeNamePort(c.Info.Name)
	if !valid {
		return "", "", "", apierrors.NewBadRequest(fmt.Sprintf("invalid %s request %q", what, c.Info.Name))
	}
	return scheme, name, port, nil
}

// podProxyLocation is the location of a Pod, at the first port that it declares unless the request names one.
func (c *Call) podProxyLocation(options runtime.Object) (*url.URL, error) {
	scheme, name, port, err := c.splitName("pod")
	if err != nil {
		return nil, err
	}
	obj, err := c.readOther("pods", name)
	if err != nil {
		return nil, err
	}
	pod := obj.(*corev1.Pod)
	for _, container := range pod.Spec.Containers {
		if port == "" && len(container.Ports) > 0 {
			port = strconv.Itoa(int(container.Ports[0].ContainerPort))
		}
	}
	ip := ""
	if len(pod.Status.PodIPs) > 0 {
		ip = pod.Status.PodIPs[0].IP
	}
	if parsed := net.ParseIP(ip); parsed == nil || !parsed.IsGlobalUnicast() {
		return nil, apierrors.NewBadRequest("address not allowed")
	}
	return &url.URL{Scheme: scheme, Host: joinPort(ip, port), Path: options.(*corev1.PodProxyOptions).Path}, nil
}

// joinPort returns the host of a URL, without a port if it is empty.
func joinPort(ip, port string) string {
	if host := net.JoinHostPort(ip, port); port != "" {
		return host
	}
	return strings.TrimSuffix(net.JoinHostPort(ip, ""), ":")
}

// nodeProxyLocation is the location of a kubelet, or of another port of its node.
func (c *Call) nodeProxyLocation(options runtime.Object) (*url.URL, error) {
	scheme, name, port, err := c.splitName("node")
	if err != nil {
		return nil, err
	}
	host, kubelet, err := c.kubelet(name)
	if err != nil {
		return nil, err
	}
	switch ip := net.ParseIP(host); {
	case ip == nil: // names are not looked up
		return nil, apierrors.NewBadRequest(unknownHost(host).Error())
	case !ip.IsGlobalUnicast():
		return nil, apierrors.NewBadRequest("address not allowed")
	case port == "" || port == kubelet:
		scheme, port = "https", kubelet
	}
	return &url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port), Path: options.(*corev1.NodeProxyOptions).Path}, nil
}

// serviceLocation is the location of an endpoint of a Service: of a Pod in the Service's Endpoints.
func (c *Call) serviceLocation(options runtime.Object) (*url.URL, error) {
	scheme, name, port, err := c.splitName("service")
	if err != nil {
		return nil, err
	}
	if number, err := strconv.ParseInt(port, 10, 64); err == nil {
		if port, err = c.servicePort(name, number); err != nil {
			return nil, err
		}
	}
	obj, err := c.readOther("endpoints", name)
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 kube-apiserver reads these, not EndpointSlices
	subsets := obj.(*corev1.Endpoints).Subsets
	if len(subsets) == 0 {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", name))
	}
	for _, subset := range subsets {
		i := slices.IndexFunc(subset.Ports, func(p corev1.EndpointPort) bool { return p.Name == port })
		if i < 0 {
			continue
		}
		for _, address := range subset.Addresses {
			if c.isPodAddress(address) {
				host := net.JoinHostPort(address.IP, strconv.Itoa(int(subset.Ports[i].Port)))
				return &url.URL{Scheme: scheme, Host: host, Path: options.(*corev1.ServiceProxyOptions).Path}, nil
			}
		}
	}
	return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", c.Info.Name))
}

// servicePort returns the name of a Service's port, by its number.
func (c *Call) servicePort(service string, number int64) (string, error) {
	obj, err := c.readOther("services", service)
	if err != nil {
		return "", err
	}
	for _, p := range obj.(*corev1.Service).Spec.Ports {
		if int64(p.Port) == number {
			return p.Name, nil
		}
	}
	return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %d found for service %q", number, service))
}

// isPodAddress reports whether an address is that of a Pod in the namespace of the call: a proxy connects to nothing
// else, because who may write Endpoints may write any address.
func (c *Call) isPodAddress(address corev1.EndpointAddress) bool {
	if address.TargetRef == nil || address.TargetRef.Namespace != c.Info.Namespace {
		return false
	}
	obj, err := c.readOther("pods", address.TargetRef.Name)
	if err != nil {
		return false
	}
	return slices.Contains(obj.(*corev1.Pod).Status.PodIPs, corev1.PodIP{IP: address.IP})
}

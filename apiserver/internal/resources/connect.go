package resources

import (
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NewConnectOptions returns empty options of a CONNECT request, by their kind, such as PodExecOptions; nil for other
// kinds. Options are what admission sees as the object of such a request. They have no metadata.
func NewConnectOptions(kind schema.GroupVersionKind) runtime.Object {
	if kind.GroupVersion() != corev1.SchemeGroupVersion {
		return nil
	}
	var out runtime.Object
	switch kind.Kind {
	case "PodExecOptions":
		out = &corev1.PodExecOptions{}
	case "PodAttachOptions":
		out = &corev1.PodAttachOptions{}
	case "PodPortForwardOptions":
		out = &corev1.PodPortForwardOptions{}
	case "PodProxyOptions":
		out = &corev1.PodProxyOptions{}
	case "ServiceProxyOptions":
		out = &corev1.ServiceProxyOptions{}
	case "NodeProxyOptions":
		out = &corev1.NodeProxyOptions{}
	default:
		return nil
	}
	out.GetObjectKind().SetGroupVersionKind(kind)
	return out
}

// DecodeConnectOptions sets options to those in the query of a CONNECT request. path is what follows the subresource
// in the URL of a proxy.
func DecodeConnectOptions(options runtime.Object, query url.Values, path string) error {
	switch o := options.(type) {
	case *corev1.PodExecOptions:
		o.Command = query["command"]
		return decodeStreams(query, &o.Stdin, &o.Stdout, &o.Stderr, &o.TTY, &o.Container)
	case *corev1.PodAttachOptions:
		return decodeStreams(query, &o.Stdin, &o.Stdout, &o.Stderr, &o.TTY, &o.Container)
	case *corev1.PodPortForwardOptions:
		if ports := query["ports"]; len(ports) > 0 {
			return metav1.Convert_Slice_string_To_Slice_int32(&ports, &o.Ports, nil)
		}
	case *corev1.PodProxyOptions:
		o.Path = path
	case *corev1.ServiceProxyOptions:
		o.Path = path
	case *corev1.NodeProxyOptions:
		o.Path = path
	default:
		return fmt.Errorf("expected options of a CONNECT request, got a %T", options)
	}
	return nil
}

// decodeStreams decodes what exec and attach share.
func decodeStreams(query url.Values, stdin, stdout, stderr, tty *bool, container *string) error {
	*container = query.Get("container")
	for name, out := range map[string]*bool{"stdin": stdin, "stdout": stdout, "stderr": stderr, "tty": tty} {
		values := query[name]
		if err := runtime.Convert_Slice_string_To_bool(&values, out, nil); err != nil {
			return err
		}
	}
	return nil
}

// DecodeLogOptions sets options to those in the query of a request for the log of a Pod.
func DecodeLogOptions(o *corev1.PodLogOptions, query url.Values) error {
	o.Container = query.Get("container")
	if values := query["stream"]; len(values) > 0 {
		o.Stream = &values[0]
	}
	booleans := map[string]*bool{"follow": &o.Follow, "previous": &o.Previous, "timestamps": &o.Timestamps,
		"insecureSkipTLSVerifyBackend": &o.InsecureSkipTLSVerifyBackend}
	for name, out := range booleans {
		values := query[name]
		if err := runtime.Convert_Slice_string_To_bool(&values, out, nil); err != nil {
			return err
		}
	}
	number := func(name string, out **int64) error {
		values := query[name]
		return runtime.Convert_Slice_string_To_Pointer_int64(&values, out, nil)
	}
	// The error is that of the first that can't be read, in this order.
	if err := number("sinceSeconds", &o.SinceSeconds); err != nil {
		return err
	}
	if values := query["sinceTime"]; len(values) > 0 {
		if err := metav1.Convert_Slice_string_To_Pointer_v1_Time(&values, &o.SinceTime, nil); err != nil {
			return err
		}
	}
	if err := number("tailLines", &o.TailLines); err != nil {
		return err
	}
	return number("limitBytes", &o.LimitBytes)
}

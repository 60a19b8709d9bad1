package verbs

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

// log serves the log of a container. There is none: a Pod without a node has no log yet, and no kubelet of a node is
// reached, as by a connecter. Everything before that is as on kube-apiserver. The steps are:
//
//	media type → options of the query → validation → container → no content, or no connection
func (c *Call) log() error {
	if err := c.acceptLog(); err != nil {
		return err
	}
	options := &corev1.PodLogOptions{}
	if err := resources.DecodeLogOptions(options, c.Request.URL.Query()); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if errs := validateLogOptions(options); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "PodLogOptions"}, c.Info.Name, errs)
	}
	obj, err := c.readOther("pods", c.Info.Name)
	if err != nil {
		return err
	}
	pod := obj.(*corev1.Pod)
	container, err := containerOf(pod, options.Container)
	if err != nil {
		return err
	}
	if pod.Spec.NodeName == "" {
		c.writeWarnings()
		c.Writer.WriteHeader(http.StatusNoContent)
		return nil
	}
	location, err := c.kubeletOf(pod)
	if err != nil {
		return err
	}
	location.Path = "/containerLogs/" + pod.Namespace + "/" + pod.Name + "/" + container
	location.RawQuery = logQuery(options).Encode()
	_, err = refuse(c.Request.Context(), "tcp", location.Host)
	return &url.Error{Op: "Get", URL: location.String(), Err: err}
}

// plainText is the media type of a log. Errors have those of objects.
var plainText = runtime.SerializerInfo{MediaType: "text/plain", MediaTypeType: "text", MediaTypeSubType: "plain"}

// acceptLog negotiates the media type of the response. kube-apiserver routes a request that accepts text/plain, and
// then refuses it unless it accepts a type of objects too.
func (c *Call) acceptLog() (err error) {
	types := c.Strategy.Serializers()
	routed := slices.Concat([]runtime.SerializerInfo{plainText}, types)
	all := func(schema.GroupVersionKind, string) bool { return true }
	if _, err := response.AcceptAs(c.Request, routed, all); err != nil {
		return err
	}
	if c.accepted, err = response.Accept(c.Request, types, false); err == nil {
		return nil
	}
	var names []string
	for _, t := range types {
		if t.MediaType != runtime.ContentTypeCBOR { // not listed, as in other responses
			names = append(names, t.MediaType)
		}
	}
	return negotiation.NewNotAcceptableError(names)
}

// validateLogOptions returns what kube-apiserver's validation reports without its feature gates.
func validateLogOptions(o *corev1.PodLogOptions) (errs field.ErrorList) {
	const notPositive = "must be greater than 0"
	if o.TailLines != nil && *o.TailLines < 0 {
		errs = append(errs, field.Invalid(field.NewPath("tailLines"), *o.TailLines, apivalidation.IsNegativeErrorMsg))
	}
	if o.LimitBytes != nil && *o.LimitBytes < 1 {
		errs = append(errs, field.Invalid(field.NewPath("limitBytes"), *o.LimitBytes, notPositive))
	}
	switch {
	case o.SinceSeconds == nil:
	case o.SinceTime != nil:
		errs = append(errs, field.Forbidden(field.NewPath(""),
			"at most one of `sinceTime` or `sinceSeconds` may be specified"))
	case *o.SinceSeconds < 1:
		errs = append(errs, field.Invalid(field.NewPath("sinceSeconds"), *o.SinceSeconds, notPositive))
	}
	if o.Stream != nil {
		errs = append(errs, field.Forbidden(field.NewPath("stream"), "may not be specified"))
	}
	return errs
}

// logQuery returns the query of a kubelet for options that are valid.
func logQuery(o *corev1.PodLogOptions) url.Values {
	out := url.Values{}
	for name, value := range map[string]bool{"follow": o.Follow, "previous": o.Previous, "timestamps": o.Timestamps} {
		if value {
			out.Set(name, "true")
		}
	}
	numbers := map[string]*int64{"sinceSeconds": o.SinceSeconds, "tailLines": o.TailLines, "limitBytes": o.LimitBytes}
	for name, value := range numbers {
		if value != nil {
			out.Set(name, strconv.FormatInt(*value, 10))
		}
	}
	if o.SinceTime != nil {
		out.Set("sinceTime", o.SinceTime.UTC().Format(time.RFC3339))
	}
	return out
}

// Package client has what the analyzers look at.
package client

type Object interface {
	GetLabels() map[string]string
	SetLabels(map[string]string)
}

type Option interface{}

type FieldOwner string

type Patch interface{ Type() string }

type patch struct{}

func (patch) Type() string { return "" }

var Apply, Merge Patch = patch{}, patch{}

var ForceOwnership, DryRunAll Option

type Client interface {
	Get(ctx any, key any, obj Object) error
	Update(ctx any, obj Object, opts ...Option) error
	Patch(ctx any, obj Object, patch Patch, opts ...Option) error
	Apply(ctx any, obj any, opts ...Option) error
	Status() SubResourceWriter
}

type SubResourceWriter interface {
	Update(ctx any, obj Object, opts ...Option) error
}

func WithFieldOwner(c Client, owner string) Client { return c }

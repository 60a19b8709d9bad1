// Package unstructured has what the analyzers look at.
package unstructured

type Unstructured struct{ Object map[string]any }

func (u *Unstructured) GetLabels() map[string]string  { return nil }
func (u *Unstructured) SetLabels(l map[string]string) {}
func (u *Unstructured) DeepCopyObject() any           { return u }
func (u *Unstructured) DeepCopy() *Unstructured       { return u }

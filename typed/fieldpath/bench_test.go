package fieldpath_test

import (
	"bytes"
	"testing"

	upstream "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// podFields is what a client that updates owns of a small Pod.
const podFields = `{"f:metadata":{"f:annotations":{".":{},"f:note":{}},"f:labels":{".":{},"f:app":{},"f:tier":{}}},` +
	`"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}},` +
	`"k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},` +
	`"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},` +
	`"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{}}},` +
	`"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}`

func BenchmarkParse(b *testing.B) {
	data := []byte(podFields)
	b.Run("tenure", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = fieldpath.Parse(data)
		}
	})
	b.Run("upstream", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = upstream.NewSet().FromJSON(bytes.NewReader(data))
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	ours, _ := fieldpath.Parse([]byte(podFields))
	theirs := upstream.NewSet()
	_ = theirs.FromJSON(bytes.NewReader([]byte(podFields)))
	b.Run("tenure", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf = ours.AppendJSON(buf[:0])
		}
	})
	b.Run("upstream", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = theirs.ToJSON()
		}
	})
}

func BenchmarkFromTree(b *testing.B) {
	set, _ := fieldpath.Parse([]byte(podFields))
	tree := set.Tree()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = fieldpath.FromTree(tree)
	}
}

func BenchmarkUnion(b *testing.B) {
	ours, _ := fieldpath.Parse([]byte(podFields))
	again, _ := fieldpath.Parse([]byte(podFields))
	b.ReportAllocs()
	for b.Loop() {
		_ = ours.Union(again)
	}
}

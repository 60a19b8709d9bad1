package response

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// gzipFrom is the minimum size of responses that are compressed. Compressing smaller ones
// costs more than it saves.
const gzipFrom = 128 << 10

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxKept is the maximum capacity of buffers that are reused.
const maxKept = 1 << 20

// Object writes obj, which has apiVersion and kind, in the media type of a.
func Object(w http.ResponseWriter, r *http.Request, a Accepted, code int, obj runtime.Object) {
	buffer := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	defer func() {
		if buffer.Cap() <= maxKept {
			buffers.Put(buffer)
		}
	}()
	if err := a.Encoder().Encode(obj, buffer); err != nil {
		Error(w, r, err)
		return
	}
	Bytes(w, r, a.MediaType, code, buffer.Bytes())
}

// Bytes writes an encoded response. It compresses it if it is large enough and the client
// accepts gzip.
func Bytes(w http.ResponseWriter, r *http.Request, contentType string, code int, data []byte) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	if header.Get("Cache-Control") == "" {
		header.Set("Cache-Control", "no-cache, private")
	}
	if len(data) >= gzipFrom && acceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		header.Add("Vary", "Accept-Encoding")
		w.WriteHeader(code)
		z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err != nil {
			return
		}
		// An error means that the connection is broken: nobody can be informed.
		_, _ = z.Write(data)
		_ = z.Close()
		return
	}
	header.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(code)
	_, _ = w.Write(data)
}

func acceptsGzip(r *http.Request) bool {
	for _, part := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(part, ";")
		if strings.TrimSpace(name) == "gzip" && strings.ReplaceAll(q, " ", "") != "q=0" {
			return true
		}
	}
	return false
}

// maxWarnings limits the total size of warnings in a response, in bytes: clients reject larger
// headers.
const maxWarnings = 4 << 10

// Warn adds Warning headers. It drops duplicates and warnings over the limit.
func Warn(w http.ResponseWriter, texts []string) {
	seen := map[string]bool{}
	room := maxWarnings
	for _, text := range texts {
		header, err := utilnet.NewWarningHeader(299, "-", text)
		if err != nil || seen[text] || len(header) > room {
			continue
		}
		seen[text], room = true, room-len(header)
		w.Header().Add("Warning", header)
	}
}

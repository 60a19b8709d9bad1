package answer

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

// gzipFrom is the length from which answers are compressed for clients that
// accept it: below, it costs more than it saves.
const gzipFrom = 128 << 10

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxKept is how large a buffer may be to be used again.
const maxKept = 1 << 20

// Object writes obj, which has its kind and version, in the representation a.
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

// Bytes writes an answer that is encoded already, compressed if that pays and the
// client accepts it.
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
		// What fails now is the connection, and there is nobody left to tell.
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

// maxWarnings is how long the warnings of one answer may be together, in bytes:
// clients refuse headers that are longer still.
const maxWarnings = 4 << 10

// Warn adds Warning headers, each text once. Texts that find no more room are
// left out.
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

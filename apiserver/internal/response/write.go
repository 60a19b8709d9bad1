package response

import (
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

// gzipFrom is the minimum size of responses that are compressed. Compressing smaller ones
// costs more than it saves.
const gzipFrom = 128 << 10

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

package apiserver

import (
	"fmt"
	"net/http"
	"runtime/debug"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

// survive keeps one request that panics, in a host's hook for example, from ending
// the server: it is answered with 500, and what happened is logged. An answer that
// was begun is cut off.
func (s *Server) survive(w *beganWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && err == http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
		panic(p)
	}
	s.options.Log.Error("a request made the server panic", "method", r.Method, "path", r.URL.Path, "panic", p, "stack",
		string(debug.Stack()))
	if w.code != 0 {
		panic(http.ErrAbortHandler)
	}
	response.Error(w, r, apierrors.NewInternalError(fmt.Errorf("the request made the server panic: %v", p)))
}

// beganWriter knows whether the answer was begun, and with which code.
type beganWriter struct {
	http.ResponseWriter
	code int // 0: not yet
}

func (w *beganWriter) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *beganWriter) Write(data []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController find what the writer can do.
func (w *beganWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

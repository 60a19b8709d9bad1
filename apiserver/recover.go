package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

// recoverPanic recovers from a panic of a request, for example in an admission hook: it logs
// it and responds with 500. A response that was started is aborted.
func (s *Server) recoverPanic(w *startedWriter, r *http.Request) {
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
	reason, _, _ := strings.Cut(fmt.Sprint(p), "\n") // what follows is a stack
	response.Error(w, r, apierrors.NewInternalError(errors.New("the request made the server panic: "+reason)))
}

// startedWriter records whether the response was started, and its code.
type startedWriter struct {
	http.ResponseWriter
	code int // 0: not started
}

func (w *startedWriter) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *startedWriter) Write(data []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	return w.ResponseWriter.Write(data)
}

// Flush sends what is written.
func (w *startedWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// CloseNotify implements http.CloseNotifier, which the wrappers of k8s.io/apiserver ask for. Nobody uses the channel:
// the context of a request ends when its connection does.
func (w *startedWriter) CloseNotify() <-chan bool { return nil }

// Unwrap is for http.ResponseController.
func (w *startedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

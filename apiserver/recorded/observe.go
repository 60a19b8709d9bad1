package recorded

import "net/http"

// stepObserver is an Observer for one step.
type stepObserver struct {
	*Observer
	step int
}

func (o *Observer) of(step int) stepObserver { return stepObserver{o, step} }

func (o stepObserver) after(answer *Answer) error {
	if o.Observer == nil {
		return nil
	}
	return o.After(o.step, answer)
}

// observe calls the observer before the request of a step, whose body is given as JSON.
func (r *Replayer) observe(step *Step, body []byte, o stepObserver) error {
	if o.Observer == nil {
		return nil
	}
	sent := step.Request
	err := unmarshalWhole(
		[]byte(`{"body":`+r.translate(string(body))+`}`),
		&struct{}{},
		func(body any) { sent.Body = body },
	)
	if err != nil {
		return err
	}
	return o.Before(o.step, sent, func(path string) (*Answer, error) {
		return r.Ask(Request{Method: http.MethodGet, Target: path})
	})
}

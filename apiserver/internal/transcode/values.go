package transcode

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// value encodes a single value with the tag of a field.
func (e *encoder) value(f *field) bool {
	e.out = append(e.out, f.tag...)
	switch f.kind {
	case text:
		return e.text()
	case boolean:
		return e.boolean()
	case number32:
		return e.number(math.MinInt32, math.MaxInt32)
	case number64:
		return e.number(math.MinInt64, math.MaxInt64)
	case binaryText:
		return e.binaryText()
	case quantity:
		return e.quantity()
	}
	at := e.open()
	ok := e.content(f)
	if ok {
		e.close(at)
	}
	return ok
}

// content encodes what a value has behind its size.
func (e *encoder) content(f *field) bool {
	switch f.kind {
	case structure:
		return e.object(f.message)
	case second:
		return e.second()
	case microsecond:
		return e.microsecond()
	case duration:
		return e.duration()
	case intOrString:
		return e.intOrString()
	case raw:
		return e.raw()
	case texts:
		return e.list(&textsField)
	}
	return false
}

// textsField is the field of a message that is a list of strings.
var textsField = field{tag: []byte{1<<3 | wireBytes}, kind: text}

// bytes appends bytes with their size.
func (e *encoder) bytes(data []byte) {
	if len(data) < 0x80 {
		e.out = append(e.out, byte(len(data)))
	} else {
		e.out = binary.AppendUvarint(e.out, uint64(len(data)))
	}
	e.out = append(e.out, data...)
}

func (e *encoder) boolean() bool {
	rest := e.in[e.at:]
	switch {
	case bytes.HasPrefix(rest, []byte("true")):
		e.at += len("true")
		e.out = append(e.out, 1)
	case bytes.HasPrefix(rest, []byte("false")):
		e.at += len("false")
		e.out = append(e.out, 0)
	default:
		return false
	}
	return true
}

// maxDigits is the number of digits of integers that always fit into 64 bits.
const maxDigits = 18

// integer reads an integer between two limits.
func (e *encoder) integer(least, most int64) (n int64, ok bool) {
	isNegative := e.take('-')
	start := e.at
	for c := e.peek(); c >= '0' && c <= '9'; c = e.peek() {
		n = n*10 + int64(c-'0')
		e.at++
	}
	digits := e.at - start
	if digits == 0 || digits > maxDigits || e.in[start] == '0' && (digits > 1 || isNegative) {
		return 0, false
	}
	switch e.peek() {
	case '.', 'e', 'E':
		return 0, false
	}
	if isNegative {
		n = -n
	}
	return n, n >= least && n <= most
}

func (e *encoder) number(least, most int64) bool {
	n, ok := e.integer(least, most)
	e.out = binary.AppendUvarint(e.out, uint64(n))
	return ok
}

// binaryText encodes bytes that are base64 in JSON.
func (e *encoder) binaryText() bool {
	content, plain, ok := e.scan()
	if !ok || !plain {
		return false
	}
	at := e.open()
	var err error
	if e.out, err = base64.StdEncoding.AppendDecode(e.out, content); err != nil {
		return false
	}
	e.close(at)
	return true
}

// maxCanonical is how many quantities an encoder remembers, and maxQuantity how long these are at most. The exponent of
// one takes maxExponent bytes at most: ParseQuantity takes seconds for 1e-9999999, and for ever for others.
const (
	maxCanonical = 1000
	maxQuantity  = 32
	maxExponent  = len("e-999")
)

// quantity encodes a quantity, which is a message with its canonical form.
func (e *encoder) quantity() bool {
	content, plain, ok := e.scan()
	if !ok || !plain || len(content) > maxQuantity {
		return false
	}
	if i := bytes.LastIndexAny(content, "eE"); i >= 0 && len(content)-i > maxExponent {
		return false
	}
	canonical, ok := e.canonical[string(content)]
	if !ok {
		q, err := resource.ParseQuantity(string(content))
		if err != nil {
			return false
		}
		canonical = q.String()
		if len(e.canonical) >= maxCanonical {
			clear(e.canonical)
		}
		e.canonical[string(content)] = canonical
	}
	at := e.open()
	e.out = append(e.out, 1<<3|wireBytes)
	e.out = binary.AppendUvarint(e.out, uint64(len(canonical)))
	e.out = append(e.out, canonical...)
	e.close(at)
	return true
}

// timestamp appends the content of a time. That of the zero time is empty.
func (e *encoder) timestamp(t time.Time) {
	if t.IsZero() {
		return
	}
	e.out = append(e.out, 1<<3)
	e.out = binary.AppendUvarint(e.out, uint64(t.Unix()))
	e.out = append(e.out, 2<<3)
	e.out = binary.AppendUvarint(e.out, uint64(t.Nanosecond()))
}

// The forms in which encoding/json writes times.
const (
	secondForm      = "2006-01-02T15:04:05Z"
	microsecondForm = "2006-01-02T15:04:05.000000Z"
)

// time reads a time in a form.
func (e *encoder) time(form string) (t time.Time, ok bool) {
	content, plain, ok := e.scan()
	if !ok || !plain || len(content) != len(form) {
		return t, false
	}
	for i, c := range []byte(form) {
		if isDigit := c >= '0' && c <= '9'; !isDigit && content[i] != c ||
			isDigit && (content[i] < '0' || content[i] > '9') {
			return t, false
		}
	}
	pair := func(at int) int { return int(content[at]-'0')*10 + int(content[at+1]-'0') }
	year, month, day := pair(0)*100+pair(2), pair(5), pair(8)
	hour, minute, second, nano := pair(11), pair(14), pair(17), 0
	if form == microsecondForm {
		nano = (pair(20)*10_000 + pair(22)*100 + pair(24)) * 1000
	}
	t = time.Date(year, time.Month(month), day, hour, minute, second, nano, time.UTC)
	// time.Date accepts the 31st of April.
	return t, t.Day() == day && int(t.Month()) == month && hour < 24 && minute < 60 && second < 60
}

func (e *encoder) second() bool {
	t, ok := e.time(secondForm)
	e.timestamp(t)
	return ok
}

func (e *encoder) microsecond() bool {
	t, ok := e.time(microsecondForm)
	e.timestamp(t)
	return ok
}

func (e *encoder) duration() bool {
	content, plain, ok := e.scan()
	if !ok || !plain {
		return false
	}
	d, err := time.ParseDuration(string(content))
	e.out = append(e.out, 1<<3)
	e.out = binary.AppendUvarint(e.out, uint64(d))
	return err == nil
}

// intOrString encodes its three fields: which of both it is, the integer, and the string.
func (e *encoder) intOrString() bool {
	if e.peek() == '"' {
		e.out = append(e.out, 1<<3, 1, 2<<3, 0, 3<<3|wireBytes)
		return e.text()
	}
	e.out = append(e.out, 1<<3, 0, 2<<3)
	ok := e.number(math.MinInt32, math.MaxInt32)
	e.out = append(e.out, 3<<3|wireBytes, 0)
	return ok
}

// raw encodes any JSON, as its bytes.
func (e *encoder) raw() bool {
	start := e.at
	if e.peek() == 'n' || !e.skip() { // null is none
		return false
	}
	e.out = append(e.out, 1<<3|wireBytes)
	e.bytes(e.in[start:e.at])
	return true
}

package transcode

// maxDepth is how deep JSON may be that is skipped.
const maxDepth = 64

// skip skips any value. It returns false if that is no valid JSON without white space, or too deep.
//
// The value around the current one is an object if the lowest bit of objects is set, the one around that by the next
// bit, and so on; there are depth of them.
func (e *encoder) skip() bool {
	var objects uint64
	for depth := 0; ; {
		// A value starts here.
		switch c := e.peek(); {
		case c == '{' || c == '[':
			e.at++
			if e.take(c + 2) { // an empty one
				break
			}
			if depth++; depth > maxDepth {
				return false
			}
			if objects <<= 1; c == '[' {
				continue
			}
			objects |= 1
			if !e.skipName() {
				return false
			}
			continue
		case c == '"':
			if !e.skipString() {
				return false
			}
		default:
			if !e.skipScalar() {
				return false
			}
		}
		// It has ended, and with it those that end behind it.
		for {
			if depth == 0 {
				return true
			}
			isObject := objects&1 != 0
			c := e.peek()
			e.at++
			if c == ',' {
				if isObject && !e.skipName() {
					return false
				}
				break
			}
			if c != '}' && c != ']' || (c == '}') != isObject {
				return false
			}
			objects >>= 1
			depth--
		}
	}
}

// skipName skips a name and the ':' behind it.
func (e *encoder) skipName() bool { return e.skipString() && e.take(':') }

// skipString skips a string, whose escapes must be valid.
func (e *encoder) skipString() bool {
	content, plain, ok := e.scan()
	if ok && !plain {
		e.scratch, ok = appendUnescaped(e.scratch[:0], content)
	}
	return ok
}

// skipScalar skips a number, true, false or null.
func (e *encoder) skipScalar() bool {
	for _, literal := range []string{"true", "false", "null"} {
		if rest := e.in[e.at:]; len(rest) >= len(literal) && string(rest[:len(literal)]) == literal {
			e.at += len(literal)
			return true
		}
	}
	e.take('-')
	if !e.take('0') && !e.skipDigits() {
		return false
	}
	if e.take('.') && !e.skipDigits() {
		return false
	}
	if e.take('e') || e.take('E') {
		if !e.take('+') {
			e.take('-')
		}
		return e.skipDigits()
	}
	return true
}

// skipDigits skips one or more digits.
func (e *encoder) skipDigits() bool {
	start := e.at
	for c := e.peek(); c >= '0' && c <= '9'; c = e.peek() {
		e.at++
	}
	return e.at > start
}

package envelope

// A valueScanner finds where JSON values begin and end in bytes that arrive one by one. It does not check them.
//
// Shape: a value is an object or an array with balanced brackets, or any other text up to the end of its line. Record
// separators, commas and white space between values are skipped. So is a line of digits before an object or array,
// which some services send as its length, and a line that begins with )]}', which protects against inclusion as a
// script.
type valueScanner struct {
	// whole means that an array is a value like any other. Otherwise, if the first value is an array, its elements
	// are the values.
	whole bool

	// array means that the values are elements of an array.
	array bool

	// closed means that the array that contains the values has ended.
	closed bool

	// begun means that the first value, or the array that contains all values, has begun.
	begun bool

	// start is the position of the current value, or -1 between values.
	start int

	// line means that the current value is text up to the end of the line.
	line bool

	// skip means that the current line is not a value but the prefix )]}', which protects against inclusion as a
	// script.
	skip bool

	// digits means that the current line has had only digits so far, so that it may be the length of the next
	// value.
	digits bool

	// depth is the number of open brackets in the current value.
	depth int

	// quoted means that the position is inside a string.
	quoted bool

	// escaped means that the previous byte was a backslash in a string, so that the next one does not end the
	// string.
	escaped bool
}

// next examines the byte at position at. If it completes a value, next returns the value's start and end, otherwise
// a negative end.
func (s *valueScanner) next(c byte, at int) (start, end int) {
	switch {
	case s.start < 0:
		s.begin(c, at)
		return 0, -1
	case s.line:
		return s.lineByte(c, at)
	case s.escaped:
		s.escaped = false
	case s.quoted:
		s.escaped, s.quoted = c == '\\', c != '"'
	case c == '"':
		s.quoted = true
	case c == '{' || c == '[':
		s.depth++
	case c == '}' || c == ']':
		if s.depth--; s.depth == 0 {
			start, s.start = s.start, -1
			return start, at + 1
		}
	}
	return 0, -1
}

// begin examines the byte c at position at between values. It begins a value unless c is a separator.
func (s *valueScanner) begin(c byte, at int) {
	switch c {
	case ' ', '\t', '\r', '\n', ',', 0x1e:
		return
	case ']':
		if s.array {
			s.closed = true
			return
		}
	case '[':
		if !s.whole && !s.begun {
			s.array, s.begun = true, true
			return
		}
	}
	s.begun = true
	s.start, s.depth = at, 1
	s.quoted, s.escaped = false, false
	s.line = c != '{' && c != '['
	s.digits = s.line && isDigit(c)
	s.skip = s.line && c == ')'
}

// isText reports whether the current value is text and not JSON. If the headers announced values, it is false.
func (s *valueScanner) isText() bool {
	return !s.whole && s.start >= 0 && s.line && !s.skip && !s.digits
}

// lineByte examines a byte of a value that ends with its line, or before a comma or bracket of an array.
func (s *valueScanner) lineByte(c byte, at int) (start, end int) {
	if s.array {
		// Scalars in an array: the array is no stream of messages.
		return 0, -1
	}
	if c != '\n' {
		s.digits = s.digits && (isDigit(c) || c == '\r')
		return 0, -1
	}
	start, s.start = s.start, -1
	if s.skip || s.digits {
		s.begun = false
		return 0, -1
	}
	return start, at
}

// end returns the start and end of the last value if that is a line without a line feed; at is the end of the
// input. Otherwise it returns 0, 0.
func (s *valueScanner) end(at int) (start, end int) {
	if s.start < 0 || !s.line || s.array || s.skip || s.digits {
		return 0, 0
	}
	return s.start, at
}

// isDigit reports whether c is a decimal digit.
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

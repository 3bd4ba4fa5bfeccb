package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrTooLarge is wrapped by the error for a JSON value that exceeds a reader's limit.
var ErrTooLarge = errors.New("the value is larger than the limit")

// A JSONValues reads a stream of JSON values, each limited in size.
//
// Limits: each value is in memory while it is decoded; nesting is limited by encoding/json to 10,000 levels.
type JSONValues struct {
	// The embedded Decoder parses the stream of values.
	*json.Decoder
	// in is the reader under the decoder, which limits the size of each value.
	in *limitedReader
}

// A limitedReader returns ErrTooLarge once limit bytes in total have been read. The limit is raised for each
// value.
type limitedReader struct {
	// r is the reader from which the data comes.
	r io.Reader
	// read is the number of bytes read so far.
	read int64
	// limit is the number of bytes, from the beginning of the stream, after which reading fails.
	limit int64
}

// Read reads from the underlying reader, up to the limit.
func (m *limitedReader) Read(p []byte) (int, error) {
	if m.read >= m.limit {
		return 0, ErrTooLarge
	}
	n, err := m.r.Read(p[:min(int64(len(p)), m.limit-m.read)])
	m.read += int64(n)
	return n, err
}

// NewJSONValues returns a JSONValues that reads from r.
func NewJSONValues(r io.Reader) *JSONValues {
	m := &limitedReader{r: r}
	return &JSONValues{json.NewDecoder(m), m}
}

// Allow limits the values that are read from now on to limit bytes in total.
func (v *JSONValues) Allow(limit int64) { v.in.limit = v.InputOffset() + limit }

// Next decodes the next value, of at most limit bytes, into the variable to which into points.
func (v *JSONValues) Next(limit int64, into any) error {
	v.Allow(limit)
	return v.Decode(into)
}

// ExpectDelim reads a JSON token, and returns an error unless it is d.
func (v *JSONValues) ExpectDelim(d json.Delim) error {
	t, err := v.Token()
	if err != nil {
		return err
	}
	if t != d {
		return fmt.Errorf("found %s where %s is expected", tokenWord(t), d)
	}
	return nil
}

// MemberName reads the name of the next member of a JSON object.
func (v *JSONValues) MemberName() (string, error) {
	t, err := v.Token()
	if err != nil {
		return "", err
	}
	name, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("found %s where a member's name is expected", tokenWord(t))
	}
	return name, nil
}

// tokenWord describes the type of a JSON token for an error message, without its value, which may be secret.
func tokenWord(t json.Token) string {
	switch t := t.(type) {
	case json.Delim:
		return t.String()
	case string:
		return "a string"
	case float64:
		return "a number"
	case bool:
		return "a boolean"
	}
	return "null"
}

// AddOffset adds to an error of decoding JSON the byte offset at which it occurred.
func (v *JSONValues) AddOffset(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("byte %d: %w", syntax.Offset, err)
	}

	// The input ended inside a value.
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("byte %d: %w", v.InputOffset(), err)
}

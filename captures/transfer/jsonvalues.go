package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrTooLarge is wrapped where one record is larger than a reader's limit.
var ErrTooLarge = errors.New("larger than the limit")

// Values reads JSON values one after the other, none larger than a limit.
//
// Limits: a value is held whole while it is decoded, and nesting ends where
// encoding/json ends it, at 10,000.
type Values struct {
	*json.Decoder
	in *meter
}

// A meter ends the input where more was read than is allowed for now.
type meter struct {
	r         io.Reader
	read, end int64
}

func (m *meter) Read(p []byte) (int, error) {
	if m.read >= m.end {
		return 0, ErrTooLarge
	}
	n, err := m.r.Read(p[:min(int64(len(p)), m.end-m.read)])
	m.read += int64(n)
	return n, err
}

// NewValues returns Values of r.
func NewValues(r io.Reader) *Values {
	m := &meter{r: r}
	return &Values{json.NewDecoder(m), m}
}

// Allow lets the next values have up to limit bytes together.
func (v *Values) Allow(limit int64) { v.in.end = v.InputOffset() + limit }

// Next decodes the next value, of up to limit bytes.
func (v *Values) Next(limit int64, into any) error {
	v.Allow(limit)
	return v.Decode(into)
}

// Delim reads a token that must be d.
func (v *Values) Delim(d json.Delim) error {
	t, err := v.Token()
	if err != nil {
		return err
	}
	if t != d {
		return fmt.Errorf("%s where %s was expected", tokenWord(t), d)
	}
	return nil
}

// Name reads the name of an object's next member.
func (v *Values) Name() (string, error) {
	t, err := v.Token()
	if err != nil {
		return "", err
	}
	name, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("%s where a name was expected", tokenWord(t))
	}
	return name, nil
}

// tokenWord says what a token is, without its value.
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

// AtByte says where in its input an error of JSON is, as far as v knows.
func (v *Values) AtByte(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("byte %d: %w", syntax.Offset, err)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("byte %d: %w", v.InputOffset(), err)
}

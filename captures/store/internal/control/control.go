// Package control lets other processes add notes, readings and definitions to a capture while it is being
// recorded. Only the recording process may change the file, so the others send it their additions over a local
// socket.
//
// Listen serves the socket and writes a control file next to the capture, which contains the socket's address
// and a token. Add sends one addition. Package store uses both ends; its FORMAT.md describes the protocol.
//
// A client is not trusted until it has sent the token, which only the recorder's user can read. Its messages are
// limited even afterwards.
package control

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"unwire/captures"
	"unwire/captures/store/internal/additions"
)

// suffix is appended to the name of the capture to form the name of the control file.
const suffix = "-control"

// version is the version of the control protocol, by which other processes send additions to a recorder.
const version = 1

// Limits of the sizes of messages in the control protocol, in bytes.
const (
	// maxHello limits the first message, which authenticates.
	maxHello = 4 << 10
	// maxRequest limits a request after authentication, and maxAnswer a response.
	maxRequest = 96 << 20
	maxAnswer  = 64 << 10
	// maxFile limits a control file.
	maxFile = 4 << 10
)

// A controlFile is the JSON content of the file from which other processes learn how to reach the recorder's
// socket.
type controlFile struct {
	// V is the version of the control protocol, always 1.
	V int `json:"v"`
	// Network is the kind of the socket as for net.Dial, "unix" or "tcp".
	Network string `json:"network"`
	// Address is the address of the socket as for net.Dial: a path or host:port.
	Address string `json:"address"`

	// Token is a random secret in hex that clients must send.
	Token string `json:"token"`
}

// A hello is a client's first message in the control protocol. It contains the token from the control file.
type hello struct {
	// V is the version of the control protocol, always 1.
	V int `json:"v"`
	// Token is the random secret from the control file, in hex, which authenticates the client.
	Token string `json:"token"`
}

// A request is a later message of a client in the control protocol: an addition, or a request to flush. Do
// selects which; members that do not apply are nil.
type request struct {
	// ID is a number of the client's choice, which the answer repeats; nil for none.
	ID *int64 `json:"id,omitempty"`
	// Do is the requested operation: "note", "reading", "definitions" or "flush".
	Do string `json:"do"`
	// Exchange is the ID of the exchange that a note is about; nil for other operations.
	Exchange *int64 `json:"exchange,omitempty"`
	// Method is the RPC method whose field gets a type; nil for other operations.
	Method *string `json:"method,omitempty"`
	// Dir is the direction of the frame or field, "up" or "down"; nil if the request concerns neither.
	Dir *string `json:"dir,omitempty"`
	// Frame is the number of the frame that a note is about, from 0; nil for a note about the whole exchange
	// and for other operations.
	Frame *int `json:"frame,omitempty"`
	// Path is the path of the protobuf field as field numbers, such as "1.2"; nil if the request concerns no
	// field.
	Path *string `json:"path,omitempty"`
	// Kind is the kind of the note or of the definitions; nil for other operations.
	Kind *string `json:"kind,omitempty"`
	// Type is the type chosen for a field, "" to withdraw the choice; nil for other operations.
	Type *string `json:"type,omitempty"`
	// Name is the name under which definitions are stored; nil for other operations.
	Name *string `json:"name,omitempty"`
	// Value is the text of a note, "" to remove it; nil for other operations.
	Value *string `json:"value,omitempty"`
	// Data is the content of definitions, in base64 in JSON; nil for other operations.
	Data []byte `json:"data,omitempty"`
	// Active is false to deactivate the definitions of a name; nil means true.
	Active *bool `json:"active,omitempty"`
}

// Values of request.Do, the kind of a request.
const (
	doNote        = "note"
	doReading     = "reading"
	doDefinitions = "definitions"
	doFlush       = "flush"
)

// An answer is a message from the recorder to a client. N is the row number of a stored addition.
type answer struct {
	// V is the version of the control protocol in the answer to the client's first message; 0 in other
	// answers.
	V int `json:"v,omitempty"`
	// ID repeats the number of the request; nil if the request has none.
	ID *int64 `json:"id,omitempty"`
	// OK means that the request succeeded; otherwise Error is set.
	OK bool `json:"ok,omitempty"`
	// N is the row number of the stored addition; 0 if nothing was stored.
	N int64 `json:"n,omitempty"`
	// Error describes why the request failed; nil after success.
	Error *reason `json:"error,omitempty"`
}

// A reason describes why a request to the recorder failed, as a code and a text.
type reason struct {
	// Code identifies the cause of the failure for programs, such as "no_exchange".
	Code code `json:"code"`
	// Message describes the cause of the failure for people.
	Message string `json:"message"`
}

// A code identifies the reason of a failed request for programs.
type code string

const (
	codeBadRequest   code = "bad_request"
	codeUnauthorized code = "unauthorized"
	codeVersion      code = "version"
	codeNoExchange   code = "no_exchange"
	codeTooLarge     code = "too_large"
	codeFull         code = "full"
	codeClosing      code = "closing"
	codeStopped      code = "stopped"
)

// codeOf returns the code for an error of storing an addition.
func codeOf(err error) code {
	for _, c := range []struct {
		err  error
		code code
	}{
		{additions.ErrInvalid, codeBadRequest},
		{captures.ErrNoExchange, codeNoExchange},
		{captures.ErrTooLarge, codeTooLarge},
		{captures.ErrFull, codeFull},
		{captures.ErrClosed, codeClosing},
	} {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return codeStopped
}

// A requestError is the error in the recorder's answer. errors.Is matches it with the error of package captures
// that has the same code.
type requestError struct {
	// The embedded reason is the cause of the failure in the recorder's answer.
	reason
}

// Error returns the recorder's text.
func (e *requestError) Error() string { return e.Message }

// Is reports whether target is the error that corresponds to this code.
func (e *requestError) Is(target error) bool {
	switch target {
	case additions.ErrInvalid, captures.ErrNoExchange, captures.ErrTooLarge, captures.ErrFull, captures.ErrClosed:
		return codeOf(target) == e.Code
	}
	return false
}

// errTooLong means that a message exceeds its limit.
var errTooLong = errors.New("the message is too long")

// readMessage reads one message with its length prefix, of at most limit bytes. Memory grows with the bytes
// that arrive, not with the announced length, which a hostile client can make large.
func readMessage(r io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if int64(size) > int64(limit) {
		return nil, fmt.Errorf("%w: the message has %d bytes, but at most %d are allowed", errTooLong, size, limit)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(size)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return b.Bytes(), nil
}

// appendMessage appends a message as JSON, with its length prefix, to b.
func appendMessage(b []byte, message any) ([]byte, error) {
	text, err := marshal(message)
	if err != nil {
		return b, err
	}
	return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...), nil
}

// marshal is json.Marshal without escaping < and > in strings.
func marshal(message any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(message)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// newRequest returns the request to store an addition.
func newRequest(a captures.Addition) *request {
	switch {
	case a.Note != nil:
		n := a.Note
		kind, value := string(n.Kind), n.Value
		r := &request{Do: doNote, Exchange: &n.Exchange, Kind: &kind, Value: &value}
		if n.Frame != captures.NoFrame {
			dir := n.Dir.String()
			r.Dir, r.Frame = &dir, &n.Frame
		}
		if n.Path != "" {
			r.Path = &n.Path
		}
		return r
	case a.Reading != nil:
		dir := a.Reading.Dir.String()
		return &request{Do: doReading, Method: &a.Reading.Method, Dir: &dir, Path: &a.Reading.Path, Type: &a.Reading.Type}
	}

	// The remaining kind is a definition.
	d := a.Definition
	r := &request{Do: doDefinitions, Name: &d.Name}
	if kind := string(d.Kind); kind != "" {
		r.Kind = &kind
	}
	if d.Active {
		r.Data = d.Data
	} else {
		r.Active = new(bool)
	}
	return r
}

// addition returns the addition that a request contains.
//
// Errors: additions.ErrInvalid.
func (r *request) addition() (a captures.Addition, err error) {
	switch r.Do {
	case doNote:
		return r.note()
	case doReading:
		return r.reading()
	case doDefinitions:
		return r.definition()
	}
	return a, fmt.Errorf("%w: unknown operation %.40q", additions.ErrInvalid, r.Do)
}

// note converts a request for a note.
func (r *request) note() (a captures.Addition, err error) {
	if r.Exchange == nil || r.Kind == nil || r.Value == nil || (r.Dir == nil) != (r.Frame == nil) {
		return a, fmt.Errorf("%w: a note needs exchange, kind and value; a note on a frame also needs dir and frame", additions.ErrInvalid)
	}
	n := &captures.Note{Place: captures.Place{Exchange: *r.Exchange, Frame: captures.NoFrame}, Kind: captures.NoteKind(*r.Kind), Value: *r.Value}
	if r.Frame != nil {
		if n.Dir, err = direction(*r.Dir); err != nil {
			return a, err
		}
		if n.Frame = *r.Frame; n.Frame < 0 {
			return a, fmt.Errorf("%w: frames are counted from 0", additions.ErrInvalid)
		}
	}
	if r.Path != nil {
		n.Path = *r.Path
	}
	return captures.Addition{Note: n}, nil
}

// reading converts a request for a reading, i.e. the type that a user chose for a field.
func (r *request) reading() (a captures.Addition, err error) {
	if r.Method == nil || r.Dir == nil || r.Path == nil || r.Type == nil {
		return a, fmt.Errorf("%w: a reading needs method, dir, path and type", additions.ErrInvalid)
	}
	dir, err := direction(*r.Dir)
	return captures.Addition{Reading: &captures.Reading{Method: *r.Method, Dir: dir, Path: *r.Path, Type: *r.Type}}, err
}

// definition converts a request for a definition. To deactivate one, only its name is needed.
func (r *request) definition() (a captures.Addition, err error) {
	active := r.Active == nil || *r.Active
	if r.Name == nil || active && (r.Kind == nil || len(r.Data) == 0) {
		return a, fmt.Errorf(`%w: definitions have kind, name and data, or name and "active":false`, additions.ErrInvalid)
	}
	d := &captures.Definition{Name: *r.Name, Active: active}
	if r.Kind != nil {
		d.Kind = captures.DefinitionKind(*r.Kind)
	}
	if active {
		d.Data = r.Data
	}
	return captures.Addition{Definition: d}, nil
}

// direction parses the direction "up" or "down".
func direction(s string) (captures.Direction, error) {
	for _, d := range []captures.Direction{captures.Up, captures.Down} {
		if s == d.String() {
			return d, nil
		}
	}
	return 0, fmt.Errorf(`%w: dir is "up" or "down"`, additions.ErrInvalid)
}

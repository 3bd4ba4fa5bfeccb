// Package control lets other programs add notes, readings and definitions to a capture
// while it is recorded: only its writer changes the file, so they send it what is to be
// added over a local socket. Listen serves the socket, and writes the control file beside
// the capture that says where it is; Add sends one addition to it. FORMAT.md of package
// store, which uses both ends, describes the protocol.
//
// The other side is not trusted before it has shown the token of the control file, which
// only the recorder's user can read, and bounded afterwards.
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

// suffix is what the name of a control file has behind that of the capture.
const suffix = "-control"

// version is that of the protocol.
const version = 1

// Limits of messages, in bytes.
const (
	maxFirst   = 4 << 10  // from a client that has not authenticated
	maxRequest = 96 << 20 // from one that has
	maxAnswer  = 64 << 10
	maxFile    = 4 << 10 // of a control file
)

// A controlFile is the content of one.
type controlFile struct {
	V       int    `json:"v"`
	Network string `json:"network"`
	Address string `json:"address"`
	Token   string `json:"token"`
}

// A hello is a client's first message.
type hello struct {
	V     int    `json:"v"`
	Token string `json:"token"`
}

// A request is any other message of a client. What it lacks is nil.
type request struct {
	ID       *int64  `json:"id,omitempty"`
	Do       string  `json:"do"`
	Exchange *int64  `json:"exchange,omitempty"`
	Method   *string `json:"method,omitempty"`
	Dir      *string `json:"dir,omitempty"`
	Frame    *int    `json:"frame,omitempty"`
	Path     *string `json:"path,omitempty"`
	Kind     *string `json:"kind,omitempty"`
	Type     *string `json:"type,omitempty"`
	Name     *string `json:"name,omitempty"`
	Value    *string `json:"value,omitempty"`
	Data     []byte  `json:"data,omitempty"`
	Active   *bool   `json:"active,omitempty"`
}

// What requests do.
const (
	doNote        = "note"
	doReading     = "reading"
	doDefinitions = "definitions"
	doFlush       = "flush"
)

// An answer is a message of the server.
type answer struct {
	V     int     `json:"v,omitempty"`
	ID    *int64  `json:"id,omitempty"`
	OK    bool    `json:"ok,omitempty"`
	N     int64   `json:"n,omitempty"`
	Error *reason `json:"error,omitempty"`
}

// A reason says why a request failed.
type reason struct {
	Code    code   `json:"code"`
	Message string `json:"message"`
}

// A code is a reason for programs.
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

// codeOf is the code of the error of an addition.
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

// A refusal is what the writer answered. It is one of the errors of package captures where
// they have one for its code.
type refusal struct{ reason }

func (e *refusal) Error() string { return e.Message }

// Is makes the errors of package captures known by their codes.
func (e *refusal) Is(target error) bool {
	switch target {
	case additions.ErrInvalid, captures.ErrNoExchange, captures.ErrTooLarge, captures.ErrFull, captures.ErrClosed:
		return codeOf(target) == e.Code
	}
	return false
}

var errTooLong = errors.New("the message is too long")

// readMessage reads one message of at most limit bytes. Memory grows with what came, not
// with what was announced.
func readMessage(r io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if int64(size) > int64(limit) {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are allowed", errTooLong, size, limit)
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

// appendMessage appends a message to b.
func appendMessage(b []byte, message any) ([]byte, error) {
	text, err := marshal(message)
	if err != nil {
		return b, err
	}
	return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...), nil
}

// marshal is json.Marshal that leaves < and > in texts as they are.
func marshal(message any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(message)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// requestOf is the request for an addition.
func requestOf(a captures.Addition) *request {
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

// addition is the addition that a request asks for.
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
	return a, fmt.Errorf("%w: cannot do %.40q", additions.ErrInvalid, r.Do)
}

func (r *request) note() (a captures.Addition, err error) {
	if r.Exchange == nil || r.Kind == nil || r.Value == nil || (r.Dir == nil) != (r.Frame == nil) {
		return a, fmt.Errorf("%w: a note has exchange, kind and value; that of a frame dir and frame", additions.ErrInvalid)
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

func (r *request) reading() (a captures.Addition, err error) {
	if r.Method == nil || r.Dir == nil || r.Path == nil || r.Type == nil {
		return a, fmt.Errorf("%w: a reading has method, dir, path and type", additions.ErrInvalid)
	}
	dir, err := direction(*r.Dir)
	return captures.Addition{Reading: &captures.Reading{Method: *r.Method, Dir: dir, Path: *r.Path, Type: *r.Type}}, err
}

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

func direction(s string) (captures.Direction, error) {
	for _, d := range []captures.Direction{captures.Up, captures.Down} {
		if s == d.String() {
			return d, nil
		}
	}
	return 0, fmt.Errorf(`%w: dir is "up" or "down"`, additions.ErrInvalid)
}

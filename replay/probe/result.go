package probe

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"unwire/decode/fieldpath"
	"unwire/replay/outbound"
)

// A Runtime is the library that parses a server's requests.
type Runtime string

const (
	ES1       Runtime = "connect-es 1"
	ES2       Runtime = "connect-es 2"
	ConnectGo Runtime = "connect-go"
	GRPCGo    Runtime = "grpc-go"
	Unknown   Runtime = "unknown"
)

// A Class is how a parser consumes a field's value.
type Class string

const (
	Varint  Class = "varint"
	Fixed32 Class = "fixed32"
	Fixed64 Class = "fixed64"
	Len     Class = "len"
	Message Class = "message"
)

// A Result is what a server's parser told.
type Result struct {
	V        int     `json:"v"`
	Method   string  `json:"method"`
	Runtime  Runtime `json:"runtime"`
	Protocol string  `json:"protocol"`
	// "unary", "stream", "bidi", or "" where it is not known
	Kind     string `json:"kind"`
	Requests int    `json:"requests"` // in all, with those of a journal
	Resumed  int    `json:"resumed"`  // of them from the journal
	Bytes    int64  `json:"bytes"`    // of request bodies
	// requests that may have run the handler
	Executed    int    `json:"executed"`
	RequestType string `json:"request_type"`
	// why it did not come to its end
	Stopped string `json:"stopped,omitempty"`
	// why a request got no answer
	Reason outbound.Reason `json:"reason,omitempty"`
	Notes  []string        `json:"notes"`
	Fields []Field         `json:"fields"`
	// of messages below, known by name alone: In says where
	Nested  []Field    `json:"nested,omitempty"`
	Settled []Question `json:"settled,omitempty"`

	// Shown are the paths of messages that a Go server was asked about in full.
	Shown map[string]bool `json:"-"`

	// Complete are the paths of messages all numbers of which were asked about.
	Complete map[string]bool `json:"-"`
}

// A Field is what was learnt of one field. What is empty was not told.
type Field struct {
	Path   string `json:"path"`   // of the message it is in: "" or "1.2"
	Number int32  `json:"number"` // 0 where only the name is known
	Class  Class  `json:"class"`
	Kind   string `json:"kind"`
	Label  string `json:"label"`
	Name   string `json:"name"`
	// full name of a message or an enum, or a scalar's
	Type string `json:"type"`
	// full name of the message that it is in, where only its name is known
	Message string `json:"message,omitempty"`
	// names that lead to that message: "options.filter"
	In string `json:"in,omitempty"`
	// names of its enum, as far as they were asked for
	Values []string `json:"values,omitempty"`
	// an Any: full names of types that the server knows, as far as they were asked for
	Holds    []string `json:"holds,omitempty"`
	Evidence []string `json:"evidence"`

	// VarintOrMessage says that it is one varint or a message, with no class.
	VarintOrMessage bool `json:"-"`

	// NoMap says that it is a message that is no map.
	NoMap bool `json:"-"`
}

func (o *Options) newResult() *Result {
	return &Result{V: 1, Method: o.Method, Runtime: Unknown, Fields: []Field{}, Notes: []string{}, Complete: map[string]bool{}, Shown: map[string]bool{}}
}

// conclude counts the requests, decides the claims of questions and sorts the
// fields. What ended the probe early is no error.
func (r *Result) conclude(c *Client, questions []Question, err error) error {
	r.Requests, r.Executed, r.Bytes, r.Resumed = c.Requests, c.executed, c.bytes, c.resumed
	if c.MaxMessage > 0 {
		r.Note(fmt.Sprintf("the server takes messages of up to about %d bytes: it was asked in small ones, which tell less", c.MaxMessage))
	}
	var early *stopError
	if errors.As(err, &early) && early.off {
		r.Runtime, r.RequestType, r.Fields, r.Nested = Unknown, "", []Field{}, nil
		clear(r.Complete)
		clear(r.Shown)
	}
	if early != nil {
		r.Stopped, r.Reason, err = early.Error(), early.reason, nil
	}
	r.judge(questions)
	r.sortFields()
	return err
}

// Note adds what is to be known of all of the result, once.
func (r *Result) Note(notes ...string) {
	for _, n := range notes {
		if n != "" && !slices.Contains(r.Notes, n) {
			r.Notes = append(r.Notes, n)
		}
	}
}

// sortFields sorts by path, then number, then name; those without a number last.
func (r *Result) sortFields() {
	slices.SortStableFunc(r.Fields, func(a, b Field) int {
		return cmp.Or(slices.Compare(numbers(a.Path), numbers(b.Path)), cmp.Compare(b.known(), a.known()), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name))
	})
}

func (f Field) known() int {
	if f.Number > 0 {
		return 1
	}
	return 0
}

func numbers(path string) []int {
	var out []int
	for s := range strings.SplitSeq(path, ".") {
		if n, err := strconv.Atoi(s); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// PathText writes numbers joined by dots.
func PathText(path []int32) string {
	var b strings.Builder
	for i, n := range path {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(strconv.Itoa(int(n)))
	}
	return b.String()
}

// ParsePath reads field numbers joined by dots, without indexes.
//
// Errors: a *strconv.NumError for text that is no such path.
func ParsePath(s string) ([]int32, error) {
	steps, err := fieldpath.ParseNumbers(s)
	if err != nil {
		return nil, &strconv.NumError{Func: "ParsePath", Num: s, Err: strconv.ErrSyntax}
	}
	var path []int32
	for _, step := range steps {
		n, _ := step.Number()
		if step.Index != fieldpath.All || n < 1 || n > maxNumber {
			return nil, &strconv.NumError{Func: "ParsePath", Num: step.Name, Err: strconv.ErrSyntax}
		}
		path = append(path, int32(n))
	}
	return path, nil
}

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
	// ES1 and ES2 are protobuf-es 1 and 2, ConnectGo and GRPCGo protobuf-go behind these servers,
	// and Unknown any other runtime.
	ES1       Runtime = "connect-es 1"
	ES2       Runtime = "connect-es 2"
	ConnectGo Runtime = "connect-go"
	GRPCGo    Runtime = "grpc-go"
	Unknown   Runtime = "unknown"
)

// A Class is a group of field types that a protobuf parser reads in the same way.
type Class string

const (
	// Varint, Fixed32 and Fixed64 are numbers, Len a string, bytes or packed list, and Message a
	// message or group.
	Varint  Class = "varint"
	Fixed32 Class = "fixed32"
	Fixed64 Class = "fixed64"
	Len     Class = "len"
	Message Class = "message"
)

// A Result is the outcome of probing the request of a method.
type Result struct {
	// V is the version of the JSON format of the result.
	V int `json:"v"`
	// Method is the probed RPC method, "/package.Service/Method".
	Method string `json:"method"`
	// Runtime is the library that parses the server's requests.
	Runtime Runtime `json:"runtime"`
	// Protocol is the protocol in which messages were sent, such as "connect-unary" or "grpc".
	Protocol string `json:"protocol"`
	// Kind is the kind of method, "unary", "stream" or "bidi"; "" if unknown.
	Kind string `json:"kind"`
	// Requests is the total number of requests, including those whose response came from a journal.
	Requests int `json:"requests"`
	// Resumed is the number of requests whose response came from the journal.
	Resumed int `json:"resumed"`
	// Bytes is the total size of all request bodies, in bytes.
	Bytes int64 `json:"bytes"`
	// Executed is the number of requests that may have started the RPC handler.
	Executed int `json:"executed"`
	// RequestType is the full name of the request's message type; "" if the server did not reveal it.
	RequestType string `json:"request_type"`
	// Stopped explains why the probe ended early; "" if it was completed.
	Stopped string `json:"stopped,omitempty"`
	// Reason is the kind of failure for programs, if a request got no response.
	Reason outbound.Reason `json:"reason,omitempty"`
	// Notes are remarks for the user about the whole result.
	Notes []string `json:"notes"`
	// Fields are the fields that the probe found.
	Fields []Field `json:"fields"`
	// Nested are fields of nested messages of which only the name is known. The path is in their member
	// In.
	Nested []Field `json:"nested,omitempty"`
	// Settled are the questions of the options, with the verdict about each claim.
	Settled []Question `json:"settled,omitempty"`
	// Reflection is set if the fields come from server reflection. The parser was not probed then.
	Reflection *Reflection `json:"reflection,omitempty"`

	// Shown has the paths of messages about which a Go server's errors reveal all that they can.
	Shown map[string]bool `json:"-"`

	// Complete has the paths of messages of which every field number was probed.
	Complete map[string]bool `json:"-"`
}

// A Reflection describes the use of server reflection, by which a server reports its definitions.
type Reflection struct {
	// Version is the version of the reflection API, "v1" or "v1alpha".
	Version string `json:"version"`

	// Protocol is the RPC protocol that was used, "grpc" or "connect".
	Protocol string `json:"protocol"`
	// Requests is the number of reflection requests. Result.Requests does not include them.
	Requests int `json:"requests"`
	// Services are the names of all services that the server lists.
	Services []string `json:"services"`
	// Definitions is a serialized FileDescriptorSet: the file that declares the method, with its imports.
	Definitions []byte `json:"definitions,omitempty"`
}

// A Field is the result of probing one field. Members that are empty are unknown.
type Field struct {
	// Path are the field numbers that lead to the field's message, such as "1.2"; "" is the
	// request.
	Path string `json:"path"`
	// Number is the field's number; 0 if only the name is known.
	Number int32 `json:"number"`
	// Class is the class of types that the server's parser accepts for the field.
	Class Class `json:"class"`
	// Kind is a more specific kind, such as "string" or "message"; "" if only the class is known.
	Kind string `json:"kind"`
	// Label is the found label: "singular", "repeated" or "map".
	Label string `json:"label"`
	// Name is the field's name in JSON; "" if unknown.
	Name string `json:"name"`
	// Type is a scalar type, or the full name of a message or an enum.
	Type string `json:"type"`
	// Message is the full name of the message that has the field, if only names are known.
	Message string `json:"message,omitempty"`
	// In are the JSON names that lead to the message that has the field, such as "options.filter".
	In string `json:"in,omitempty"`
	// Values are the names of the field's enum values that the server accepted.
	Values []string `json:"values,omitempty"`
	// MapValue is the type of a map's values: a scalar type, or the full name of a message or an
	// enum.
	MapValue string `json:"map_value,omitempty"`
	// Holds are the full names of the message types that the server accepted in this field, an Any.
	Holds []string `json:"holds,omitempty"`
	// Evidence are the server's responses from which the result is derived.
	Evidence []string `json:"evidence"`

	// VarintOrMessage means that the field is either a single varint, or a message with any label, and
	// that the server's answers do not show which.
	VarintOrMessage bool `json:"-"`

	// MapFamily is set instead of MapValue if only a group of types is known: "int32" stands for int32,
	// sint32 and sfixed32.
	MapFamily string `json:"-"`

	// NoMap means that the field is a message but not a map.
	NoMap bool `json:"-"`
}

// newResult returns an empty result for the method.
func (o *Options) newResult() *Result {
	return &Result{V: 1, Method: o.Method, Runtime: Unknown, Fields: []Field{}, Notes: []string{}, Complete: map[string]bool{}, Shown: map[string]bool{}}
}

// conclude completes the result: it copies the numbers of requests, decides the claims of questions and
// sorts the fields. err is the error with which the probe ended; it returns nil if the probe only ended
// early.
func (r *Result) conclude(c *Client, questions []Question, err error) error {
	r.Requests, r.Executed, r.Bytes, r.Resumed = c.Requests, c.executed, c.bytes, c.resumed
	if c.MaxMessage > 0 {
		r.Note(fmt.Sprintf("the server rejects messages of more than about %d bytes, so unwire sent small ones, which reveal less about fields", c.MaxMessage))
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

// Note adds remarks to the result, each only once.
func (r *Result) Note(notes ...string) {
	for _, n := range notes {
		if n != "" && !slices.Contains(r.Notes, n) {
			r.Notes = append(r.Notes, n)
		}
	}
}

// sortFields sorts the fields by path, number and name. Fields without a number come last.
func (r *Result) sortFields() {
	slices.SortStableFunc(r.Fields, func(a, b Field) int {
		return cmp.Or(slices.Compare(numbers(a.Path), numbers(b.Path)), cmp.Compare(b.known(), a.known()), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name))
	})
}

// known returns 1 if the field's number is known and 0 otherwise, for sorting.
func (f Field) known() int {
	if f.Number > 0 {
		return 1
	}
	return 0
}

// numbers returns the field numbers in a path such as "1.2".
func numbers(path string) []int {
	var out []int
	for s := range strings.SplitSeq(path, ".") {
		if n, err := strconv.Atoi(s); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// PathText returns the text of a path: the field numbers joined with dots.
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

// ParsePath parses a path such as "1.2", i.e. field numbers joined by dots.
//
// Errors: a *strconv.NumError if the text is not such a path.
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

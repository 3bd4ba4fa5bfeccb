package probe

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

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
	V           int             `json:"v"`
	Method      string          `json:"method"`
	Runtime     Runtime         `json:"runtime"`
	Protocol    string          `json:"protocol"`
	Kind        string          `json:"kind"`     // "unary", "stream", "bidi", or "" where it is not known
	Requests    int             `json:"requests"` // in all, with those of a journal
	Resumed     int             `json:"resumed"`  // of them from the journal
	Bytes       int64           `json:"bytes"`    // of request bodies
	Executed    int             `json:"executed"` // requests that may have run the handler
	RequestType string          `json:"request_type"`
	Stopped     string          `json:"stopped,omitempty"` // why it did not come to its end
	Reason      outbound.Reason `json:"reason,omitempty"`  // why a request got no answer
	Notes       []string        `json:"notes"`
	Fields      []Field         `json:"fields"`
	Nested      []Field         `json:"nested,omitempty"` // of messages below, known by name alone: In says where
	Settled     []Question      `json:"settled,omitempty"`

	shown    map[string]bool // the paths that a Go server was asked about in full
	complete map[string]bool // the paths all numbers of which were asked about
}

// A Field is what was learnt of one field. What is empty was not told.
type Field struct {
	Path     string   `json:"path"`   // of the message it is in: "" or "1.2"
	Number   int32    `json:"number"` // 0 where only the name is known
	Class    Class    `json:"class"`
	Kind     string   `json:"kind"`
	Label    string   `json:"label"`
	Name     string   `json:"name"`
	Type     string   `json:"type"`              // full name of a message or an enum, or a scalar's
	Message  string   `json:"message,omitempty"` // full name of the message that it is in, where only its name is known
	In       string   `json:"in,omitempty"`      // names that lead to that message: "options.filter"
	Values   []string `json:"values,omitempty"`  // names of its enum, as far as they were asked for
	Holds    []string `json:"holds,omitempty"`   // an Any: full names of types that the server knows, as far as they were asked for
	Evidence []string `json:"evidence"`

	// eitherOne says that it is one varint or a message, with no class.
	eitherOne bool
	// noMap says that it is a message that is no map.
	noMap bool
}

func (r *Result) note(notes ...string) {
	for _, n := range notes {
		if n != "" && !slices.Contains(r.Notes, n) {
			r.Notes = append(r.Notes, n)
		}
	}
}

func (r *Result) finish() {
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

// joinPath is a path with one more number.
func joinPath(path string, n int32) string {
	if path == "" {
		return strconv.Itoa(int(n))
	}
	return path + "." + strconv.Itoa(int(n))
}

// pathText writes numbers joined by dots.
func pathText(path []int32) string {
	var b strings.Builder
	for i, n := range path {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(strconv.Itoa(int(n)))
	}
	return b.String()
}

// ParsePath reads field numbers joined by dots.
func ParsePath(s string) ([]int32, error) {
	if s == "" {
		return nil, nil
	}
	var path []int32
	for part := range strings.SplitSeq(s, ".") {
		n, err := strconv.ParseInt(part, 10, 32)
		if err != nil || n < 1 || n > maxNumber {
			return nil, &strconv.NumError{Func: "ParsePath", Num: part, Err: strconv.ErrSyntax}
		}
		path = append(path, int32(n))
	}
	return path, nil
}

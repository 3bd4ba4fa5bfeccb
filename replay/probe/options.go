package probe

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"unwire/replay/outbound"
	"unwire/schema"
)

// Options says what to ask whom. To and Method are needed.
type Options struct {
	To     *url.URL
	Method string // "/pkg.Service/Method"
	// numbers of the message fields that lead to the message asked about; nil: the request itself
	Path    []int32
	Numbers Numbers // asked about; default 1 to 1,100
	// ask just what settles them, instead of Path and Numbers
	Questions []Question
	// fields of the request that are text, it is believed: a Go server is asked with one
	Texts []int32
	Hints map[int32]Hint // what a capture shows of the message's fields
	// candidates for JSON names; none: names are not asked for
	Names []string
	// candidates for the names of enums' values, with Names; words behind the enum's name are tried, too; none: not asked for
	Values []string
	// full names of messages that an Any may hold, with Names; none: not asked for
	Types []string
	// JSON names that exist, and are of no field of a float type
	Known []string
	// a capture or definitions say that the client streams: the handler starts at each request
	ClientStreams bool
	// requests that may start the handler, though with no message, may go to another machine, too
	AllowExecute bool
	Depth        int // levels of messages below Path to ask about, too
	// ask one more request a field for what it tells: string or bytes
	Refine bool
	// ask for the request's type and the runtime's version in JSON
	Type bool

	Protocol Protocol      // default connect-unary
	Header   []HeaderField // of every request
	// over TLS it is negotiated, over http:// it is spoken unasked
	HTTP2  bool
	Budget int // requests; default 2,000

	// Asked, if set, is called after each request.
	Asked func()
	// requests a second; 0: no limit for this machine, 1 for others
	Rate    float64
	Timeout time.Duration // of one request; default 20 s
	// that a server's retry-after is followed; default 60 s
	MaxWait time.Duration
	// every request and answer; what it holds already is not asked again; nil: none
	Journal io.ReadWriteSeeker
	Reach   outbound.Policy // which servers may be asked
	Schema  *schema.Schema  // for the idempotency level of Method; may be nil
}

// A HeaderField is a header of a request.
type HeaderField struct {
	Name, Value string
	Secret      bool
}

// A Hint is what a captured message shows of a field.
type Hint struct {
	Varint bool // it occurred with this wire type
	Len    bool // it occurred length-delimited
}

const (
	defaultBudget  = 2000
	defaultTimeout = 20 * time.Second
	defaultMaxWait = time.Minute
	maxDepth       = 8
)

// Complete fills in defaults, and checks what is given. It returns the headers that are
// sent, without the values of secrets.
//
// Errors: what makes no sense; outbound.ErrRefused.
func (o *Options) Complete() (headers []string, err error) {
	if len(o.Numbers) == 0 {
		o.Numbers = Numbers{{1, defaultLast}}
	}
	o.Numbers = slices.Clone(o.Numbers)
	if o.Budget <= 0 {
		o.Budget = defaultBudget
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxWait <= 0 {
		o.MaxWait = defaultMaxWait
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	o.ClientStreams = o.ClientStreams || o.definedAsStream()
	return o.headerLines(), outbound.CheckTarget(o.To, o.Reach.Live, o.Reach.AllowHosts)
}

func (o *Options) check() error {
	switch {
	case o.To == nil:
		return errors.New("probe: no target")
	case strings.Count(o.Method, "/") != 2 || !strings.HasPrefix(o.Method, "/") || strings.HasSuffix(o.Method, "/"):
		return fmt.Errorf("probe: method %q is not /package.Service/Method", o.Method)
	case o.Depth < 0 || o.Depth > maxDepth:
		return fmt.Errorf("probe: depth %d: want 0 to %d", o.Depth, maxDepth)
	}
	if err := o.Numbers.check(); err != nil {
		return err
	}
	if paths, _ := wants(o.Questions); len(o.Questions) > 0 && len(paths) == 0 {
		return errors.New("probe: no question is about a field")
	}
	for _, n := range o.Path {
		if n < 1 || n > maxNumber {
			return fmt.Errorf("probe: path: %d is no field number", n)
		}
	}
	return nil
}

// headerLines are the headers that are sent, without the values of secrets.
func (o *Options) headerLines() []string {
	lines := []string{}
	for _, h := range o.Header {
		switch {
		case ownHeader(h.Name):
		case h.Secret:
			lines = append(lines, h.Name+": (secret)")
		default:
			lines = append(lines, h.Name+": "+h.Value)
		}
	}
	return lines
}

// definedAsStream reports whether definitions say that the client streams.
func (o *Options) definedAsStream() bool {
	if o.Schema == nil {
		return false
	}
	service, rpc, _ := strings.Cut(strings.TrimPrefix(o.Method, "/"), "/")
	m := o.Schema.Method(service, rpc)
	return m != nil && m.IsStreamingClient()
}

// wants are the numbers that questions are about, by message.
func wants(list []Question) (paths [][]int32, numbers map[string]Numbers) {
	numbers = map[string]Numbers{}
	for _, q := range list {
		path, err := ParsePath(q.Path)
		if err != nil || q.Number < 1 || q.Number > maxNumber {
			continue
		}
		if numbers[q.Path] == nil {
			paths = append(paths, path)
		}
		r := Range{q.Number, q.Number}
		if !slices.Contains(numbers[q.Path], r) {
			numbers[q.Path] = append(numbers[q.Path], r)
		}
	}
	for _, list := range numbers {
		slices.SortFunc(list, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	}
	slices.SortStableFunc(paths, func(a, b []int32) int { return len(a) - len(b) })
	return paths, numbers
}

// Targets are what a runtime's strategy begins with: those that questions are
// about, or the one at Options.Path.
func (o *Options) Targets() (paths [][]int32, numbers map[string]Numbers) {
	if len(o.Questions) > 0 {
		return wants(o.Questions)
	}
	return [][]int32{o.Path}, map[string]Numbers{PathText(o.Path): o.Numbers}
}

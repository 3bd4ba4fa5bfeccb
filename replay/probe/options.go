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

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/outbound"
	"unwire/schema"
)

// Options describe which method to probe, and how. To and Method are required.
type Options struct {
	// To is the server's URL. Its path, if any, is put before Method.
	To *url.URL
	// Method is "/pkg.Service/Method". A path before the service is moved to the path of To.
	Method string
	// Path are the field numbers that lead from the request to the probed message; nil for the request
	// itself.
	Path []int32
	// Numbers are the field numbers to probe; the default is 1 to 1,100.
	Numbers Numbers
	// Questions, if set, replace Path and Numbers: only the fields that they are about are probed.
	Questions []Question
	// Texts are the numbers of request fields that are probably strings. Requests to a Go server end
	// with one of them, made invalid.
	Texts []int32
	// Hints are the wire types of fields in a captured message, by field number.
	Hints map[int32]Hint
	// Names are candidates for JSON names; if empty, names are not probed.
	Names []string
	// Values are candidates for the names of enum values, used with Names. They are also tried with
	// the enum's name as a prefix. If empty, enum values are not probed.
	Values []string
	// Types are the full names of messages that an Any may contain, used with Names. If empty, they
	// are not probed.
	Types []string
	// Known are JSON names of existing fields that are not of type float or double.
	Known []string
	// ClientStreams means that a capture or the definitions declare client streaming, so that each
	// request starts the handler.
	ClientStreams bool
	// SingleRequest means that the definitions or the server's reflection declare that a call has one
	// message of the client.
	SingleRequest bool
	// AllowExecute permits requests that may start the handler (without a message) on other
	// machines too.
	AllowExecute bool
	// Depth is the number of levels of nested messages below Path that are probed, too; the default is
	// 0.
	Depth int
	// Refine spends one more request for each length-delimited field, to distinguish string from
	// bytes.
	Refine bool
	// Type asks the server, in JSON, for the request's type and the version of its runtime.
	Type bool

	// Protocol is the protocol to use; the default starts with connect-unary.
	Protocol Protocol
	// Header are the HTTP headers sent with every request.
	Header []HeaderField
	// HTTP2 uses HTTP/2: negotiated over TLS, with prior knowledge over http://.
	HTTP2 bool
	// Budget is the largest number of requests; the default is 2,000.
	Budget int

	// Waiting, if not nil, is called before unwire waits because of the server's Retry-After, with the
	// server's message.
	Waiting func(wait time.Duration, answer string)

	// Asked, if not nil, is called after each request that was sent.
	Asked func()
	// Rate is the largest number of requests per second; 0 means unlimited for this machine, and 1 for
	// others.
	Rate float64
	// Timeout is the time limit for one request. Default: 20 seconds.
	Timeout time.Duration
	// MaxWait is the longest Retry-After that is obeyed; the default is 60 seconds.
	MaxWait time.Duration
	// Journal records every request and response. A request whose response it already has is not sent
	// again. It may be nil.
	Journal io.ReadWriteSeeker
	// Reach determines which hosts may be contacted.
	Reach outbound.Policy
	// Schema contains the definition of the method, which states the method's idempotency level; nil if
	// unknown.
	Schema *schema.Schema
}

// A HeaderField is an HTTP header of the probe's requests.
type HeaderField struct {
	// Name and Value are sent unchanged.
	Name, Value string
	// Secret means that the value is not shown and not written to the journal.
	Secret bool
}

// A Hint describes how a field was encoded in captured messages.
type Hint struct {
	// Varint means that the field occurred with wire type varint.
	Varint bool
	// Len means that the field occurred with the length-delimited wire type.
	Len bool
}

const (
	defaultBudget  = 2000
	defaultTimeout = 20 * time.Second
	defaultMaxWait = time.Minute
	maxDepth       = 8
)

// Complete fills in defaults and validates the options. It returns the headers that are sent, as lines
// without the values of secrets.
//
// Errors: contradictory or invalid options; outbound.ErrRefused.
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
	o.SplitMethod()
	if err := o.check(); err != nil {
		return nil, err
	}
	if m := o.defined(); m != nil {
		o.Declared(m)
	}
	return o.headerLines(), outbound.CheckTarget(o.To, o.Reach.Live, o.Reach.AllowHosts)
}

// SplitMethod moves the part of Method before the service, such as /api/v1, to the path of the URL To.
func (o *Options) SplitMethod() {
	i := strings.LastIndexByte(o.Method, '/')
	if o.To == nil || i < 0 {
		return
	}
	if i = strings.LastIndexByte(o.Method[:i], '/'); i > 0 {
		o.addPrefix(o.Method[:i])
		o.Method = o.Method[i:]
	}
}

// addPrefix appends a path to the URL To, unless it ends with that path already.
func (o *Options) addPrefix(prefix string) {
	have := "/" + strings.Trim(o.To.Path, "/")
	if prefix = "/" + strings.Trim(prefix, "/"); prefix == "/" || strings.HasSuffix(have, prefix) {
		return
	}
	to := *o.To
	to.Path, to.RawPath = strings.TrimSuffix(have, "/")+prefix, ""
	o.To = &to
}

// check validates the options.
func (o *Options) check() error {
	switch {
	case o.To == nil:
		return errors.New("probe: no server is given")
	case strings.Count(o.Method, "/") != 2 || !strings.HasPrefix(o.Method, "/") || strings.HasSuffix(o.Method, "/"):
		return fmt.Errorf("probe: method %q does not have the form /package.Service/Method", o.Method)
	case o.Depth < 0 || o.Depth > maxDepth:
		return fmt.Errorf("probe: the depth must be from 0 to %[2]d, not %[1]d", o.Depth, maxDepth)
	}
	if err := o.Numbers.check(); err != nil {
		return err
	}
	if paths, _ := wants(o.Questions); len(o.Questions) > 0 && len(paths) == 0 {
		return errors.New("probe: none of the given questions is about a field")
	}
	for _, n := range o.Path {
		if n < 1 || n > maxNumber {
			return fmt.Errorf("probe: the path contains %d, which is not a field number", n)
		}
	}
	return nil
}

// headerLines returns the headers that are sent as lines, without the values of secrets.
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

// Declared records how a declaration of the method says that clients send messages. A capture in which the client
// streams counts more.
func (o *Options) Declared(m protoreflect.MethodDescriptor) {
	o.ClientStreams = o.ClientStreams || m.IsStreamingClient()
	o.SingleRequest = !o.ClientStreams
}

// defined returns the method as the definitions declare it; nil if they do not.
func (o *Options) defined() protoreflect.MethodDescriptor {
	if o.Schema == nil {
		return nil
	}
	service, rpc, _ := strings.Cut(strings.TrimPrefix(o.Method, "/"), "/")
	return o.Schema.Method(service, rpc)
}

// definedAsRequired returns the numbers of the request's fields that the definitions declare as
// required, and that no test sets.
func (o *Options) definedAsRequired() []int32 {
	if m := o.defined(); m != nil {
		return requiredNumbers(m.Input())
	}
	return nil
}

// requiredNumbers returns the required fields of a message type that are numeric. The probe's tests
// never set them, because they have length-delimited values.
func requiredNumbers(md protoreflect.MessageDescriptor) (list []int32) {
	required := md.RequiredNumbers()
	for i := range required.Len() {
		switch md.Fields().ByNumber(required.Get(i)).Kind() {
		case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind, protoreflect.GroupKind:
		default:
			list = append(list, int32(required.Get(i)))
		}
	}
	return list
}

// wants returns the messages that questions are about, by path, and the field numbers in them.
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

// Targets returns the messages with which a probe begins, by path, and the field numbers to probe in
// each: those that questions are about, or the message at Options.Path.
func (o *Options) Targets() (paths [][]int32, numbers map[string]Numbers) {
	if len(o.Questions) > 0 {
		return wants(o.Questions)
	}
	return [][]int32{o.Path}, map[string]Numbers{PathText(o.Path): o.Numbers}
}

// Package probe learns field numbers, kinds, types and names of a request from
// a server's own parse errors, without its handler ever running: every message
// that it sends ends with bytes that no parser takes.
//
// Run asks one method. What the parser of a runtime tells differs, so there is
// a strategy for each: canaries for protobuf-es (canary.go, es.go), poisoned
// text for Go (golang.go), wrong-typed values for names in JSON (names.go).
//
// Source: RESEARCH.md#probe
package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"unwire/replay/outbound"
	"unwire/schema"
)

// Options says what to ask whom. To and Method are needed.
type Options struct {
	To            *url.URL
	Method        string         // "/pkg.Service/Method"
	Path          []int32        // numbers of the message fields that lead to the message asked about; nil: the request itself
	Numbers       []Range        // asked about; default 1 to 1,100
	Questions     []Question     // ask just what settles them, instead of Path and Numbers
	Texts         []int32        // fields of the request that are text, it is believed: a Go server is asked with one
	Hints         map[int32]Hint // what a capture shows of the message's fields
	Names         []string       // candidates for JSON names; none: names are not asked for
	Values        []string       // candidates for the names of enums' values, with Names; words behind the enum's name are tried, too; none: not asked for
	Types         []string       // full names of messages that an Any may hold, with Names; none: not asked for
	Known         []string       // JSON names that exist, and are of no field of a float type
	ClientStreams bool           // a capture or definitions say that the client streams: the handler starts at each request
	AllowExecute  bool           // requests that may start the handler, though with no message, may go to another machine, too
	Depth         int            // levels of messages below Path to ask about, too
	Refine        bool           // ask one more request a field for what it tells: string or bytes
	Type          bool           // ask for the request's type and the runtime's version in JSON

	Protocol Protocol           // default Auto
	Header   []HeaderField      // of every request
	HTTP2    bool               // over TLS it is negotiated, over http:// it is spoken unasked
	Budget   int                // requests; default 2,000
	Rate     float64            // requests a second; 0: no limit for this machine, 1 for others
	Timeout  time.Duration      // of one request; default 20 s
	MaxWait  time.Duration      // that a server's retry-after is followed; default 60 s
	Journal  io.ReadWriteSeeker // every request and answer; what it holds already is not asked again; nil: none
	Reach    outbound.Policy    // which servers may be asked
	Schema   *schema.Schema     // for the idempotency level of Method; may be nil
}

// A Range is of field numbers, with both of its ends.
type Range struct {
	First int32 `json:"first"`
	Last  int32 `json:"last"`
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
	defaultLast    = 1100
	maxNumber      = 1<<29 - 1
	firstReserved  = 19_000 // for implementations of protobuf
	lastReserved   = 19_999
	maxNumbers     = 100_000 // that are asked about in one run
	defaultBudget  = 2000
	defaultTimeout = 20 * time.Second
	defaultMaxWait = time.Minute
	maxDepth       = 8
)

// below is the highest number that is asked about and not above n; 0 is none.
// The numbers that are reserved are never of a field.
func below(numbers []Range, n int32) int32 {
	if n >= firstReserved && n <= lastReserved {
		n = firstReserved - 1
	}
	for i := len(numbers) - 1; i >= 0; i-- {
		if m := min(n, numbers[i].Last); m >= numbers[i].First {
			if m >= firstReserved && m <= lastReserved {
				return below(numbers, firstReserved-1)
			}
			return m
		}
	}
	return 0
}

// count is how many numbers are asked about.
func count(numbers []Range) (n int32) {
	for _, r := range numbers {
		n += r.Last - r.First + 1
	}
	return n
}

// rangesText writes ranges as they are written on a command line.
func rangesText(numbers []Range) string {
	var parts []string
	for _, r := range numbers {
		if r.First == r.Last {
			parts = append(parts, strconv.Itoa(int(r.First)))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d-%d", r.First, r.Last))
	}
	return strings.Join(parts, ",")
}

func (o *Options) defaults() error {
	if len(o.Numbers) == 0 {
		o.Numbers = []Range{{1, defaultLast}}
	}
	o.Numbers = slices.Clone(o.Numbers)
	slices.SortFunc(o.Numbers, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	if o.Budget <= 0 {
		o.Budget = defaultBudget
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxWait <= 0 {
		o.MaxWait = defaultMaxWait
	}
	switch {
	case o.To == nil:
		return errors.New("probe: no target")
	case strings.Count(o.Method, "/") != 2 || !strings.HasPrefix(o.Method, "/") || strings.HasSuffix(o.Method, "/"):
		return fmt.Errorf("probe: method %q is not /package.Service/Method", o.Method)
	case o.Depth < 0 || o.Depth > maxDepth:
		return fmt.Errorf("probe: depth %d: want 0 to %d", o.Depth, maxDepth)
	}
	count := int64(0)
	for i, r := range o.Numbers {
		switch {
		case r.First < 1 || r.Last < r.First || r.Last > maxNumber:
			return fmt.Errorf("probe: numbers %d to %d: want 1 to %d", r.First, r.Last, maxNumber)
		case i > 0 && r.First <= o.Numbers[i-1].Last:
			return fmt.Errorf("probe: numbers %d to %d: %d is asked about twice", r.First, r.Last, r.First)
		}
		if count += int64(r.Last-r.First) + 1; count > maxNumbers {
			return fmt.Errorf("probe: %d numbers: at most %d at once", count, maxNumbers)
		}
	}
	if paths, _ := wants(o.Questions); len(o.Questions) > 0 && len(paths) == 0 {
		return errors.New("probe: no question is about a field")
	}
	o.ClientStreams = o.ClientStreams || o.definedAsStream()
	for _, n := range o.Path {
		if n < 1 || n > maxNumber {
			return fmt.Errorf("probe: path: %d is no field number", n)
		}
	}
	return outbound.CheckTarget(o.To, o.Reach.Live, o.Reach.AllowHosts)
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

// Run asks a method's parser what it knows.
//
// Shape: what was learnt before the probe was stopped, by the server or by ctx,
// is in the Result, and Stopped says why. The same answers give the same
// requests, so a run with the journal of one that was killed goes on.
// Limits: Options' Budget, Rate and Timeout; an answer is read to 1 MiB.
// Errors: replay.ErrRefused; of options; ctx's; of the journal.
func Run(ctx context.Context, o Options) (*Result, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	c, err := newClient(&o)
	if err != nil {
		return nil, err
	}
	defer c.close()
	res := &Result{V: 1, Method: o.Method, Runtime: Unknown, Fields: []Field{}, Notes: []string{}, complete: map[string]bool{}, shown: map[string]bool{}}
	err = run(ctx, c, &o, res)
	res.Requests, res.Executed, res.Bytes, res.Resumed = c.requests, c.executed, c.bytes, c.resumed
	if c.most > 0 {
		res.note(fmt.Sprintf("the server takes messages of up to about %d bytes: it was asked in small ones, which tell less", c.most))
	}
	var early *stopError
	if errors.As(err, &early) && early.off {
		res.Runtime, res.RequestType, res.Fields, res.Nested = Unknown, "", []Field{}, nil
		clear(res.complete)
		clear(res.shown)
	}
	if early != nil {
		res.Stopped, res.Reason, err = early.Error(), early.reason, nil
	}
	res.judge(o.Questions)
	res.finish()
	return res, err
}

func run(ctx context.Context, c *client, o *Options, res *Result) error {
	print, err := fingerprint(ctx, c, o.firstMessage(c).firstPayload)
	res.Runtime, res.Kind, res.Protocol = print.runtime, print.kind, string(c.protocol)
	if err != nil {
		return err
	}
	res.note(print.notes...)
	switch print.runtime {
	case ES1, ES2:
		err := runES(ctx, c, o, res)
		if res.RequestType == "" {
			res.note("the version of connect-es is a guess: only its JSON tells it")
		}
		return err
	case ConnectGo, GRPCGo:
		return runGo(ctx, c, o, res)
	}
	res.note("the oracle is off: the answers do not say what the parser met, so nothing is claimed")
	return nil
}

package mock

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/wire"
	"unwire/replay/live"
	"unwire/replay/live/values"
)

// Limits of a library.
const (
	// maxCalls is the number of recorded calls that can answer requests.
	maxCalls = 100_000
	// maxCandidates is the number of recorded calls of one method that a request is compared with.
	maxCandidates = 1000
	// cacheBytes is the size of the bodies of the tapes that are kept, in bytes.
	cacheBytes = 128 << 20
)

// noTypes are the types of messages whose schema is unknown.
var noTypes [2]protoreflect.MessageDescriptor

// A call is what the index has of a recorded exchange.
type call struct {
	id   int64
	host string

	// protocol and codec are those of the request.
	protocol decode.Protocol
	codec    string
}

// A library is the index of a capture's calls, with a cache of those that were used last.
//
// Limits: maxCalls, maxCandidates, cacheBytes.
type library struct {
	src *store.ClientView

	// byKey are the calls by method, and order are all of them.
	byKey   map[string][]call
	order   []int64
	skipped []Skipped

	mu sync.Mutex
	// cache are tapes by exchange; lru has their numbers, the last used ones first. bytes is their size.
	cache map[int64]*list.Element
	lru   list.List
	bytes int64
}

// A tape is a recorded exchange in the form in which it is played.
type tape struct {
	ex *decode.Exchange

	// swapped is ex with the client and the server in each other's place.
	swapped *decode.Exchange

	// target is what counts of the URL; see targetOf.
	target *decode.Frame

	// up are the client's messages. first is how many of them precede the server's first frame.
	up    []*decode.Frame
	first int

	// body is the body of the response, after compression of the whole body was undone.
	body []byte
	size int64
}

// newLibrary reads the index of a capture.
func newLibrary(ctx context.Context, src *store.Store) (*library, error) {
	l := &library{src: src.ClientView(), byKey: map[string][]call{}, cache: map[int64]*list.Element{}}
	for row, err := range src.Exchanges(ctx) {
		if err != nil {
			return nil, err
		}
		ex, err := l.src.Exchange(ctx, row.ID)
		if err != nil {
			return nil, err
		}
		if reason := unplayable(ex); reason != "" {
			l.skipped = append(l.skipped, Skipped{row.ID, reason})
			continue
		}
		// The index of a larger capture would take seconds at each start.
		if len(l.order) >= maxCalls {
			return nil, fmt.Errorf("the capture has more than %d calls; 'unwire export' can write a part of it", maxCalls)
		}
		c := requestCall(ex)
		key := keyOf(ex, c)
		l.byKey[key] = append(l.byKey[key], call{id: ex.ID, host: hostOf(ex.URL), protocol: c.Protocol, codec: c.Codec})
		l.order = append(l.order, ex.ID)
	}
	if len(l.order) == 0 {
		return nil, errors.New("the capture has no HTTP call with an answer; 'unwire ls' shows what it has")
	}
	return l, nil
}

// unplayable returns why an exchange cannot answer requests; "" if it can.
func unplayable(ex *captures.Exchange) string {
	switch {
	case ex.Transport == captures.WebSocket:
		return "WebSockets are not played"
	case ex.Transport != captures.HTTP:
		return "it is a connection without HTTP"
	case ex.ChangedProtocol() != "":
		return "the connection changed to another protocol: " + ex.ChangedProtocol()
	case ex.Method == "CONNECT":
		return "it is a tunnel"
	case ex.Status == 0:
		return "it has no response"
	}
	return ""
}

// requestCall classifies an exchange by its request alone, as a server has to.
func requestCall(ex *captures.Exchange) decode.Call {
	request := *ex
	request.ResponseHeaders, request.Status = nil, 0
	return decode.Classify(&request)
}

// keyOf returns the name under which a call is found: the RPC method, or the HTTP method and the path.
func keyOf(ex *captures.Exchange, c decode.Call) string {
	if c.Service != "" {
		return "/" + c.Service + "/" + c.RPC
	}
	u, err := url.Parse(ex.URL)
	if err != nil {
		return ex.Method + " " + ex.URL
	}
	return ex.Method + " " + u.EscapedPath()
}

func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// find returns the recorded calls of a method. Without any, those of a path that differs in identifiers only.
func (l *library) find(key string) []call {
	if calls := l.byKey[key]; len(calls) > 0 || strings.HasPrefix(key, "/") {
		return calls
	}

	// Plain HTTP has identifiers in paths.
	var out []call
	for other, calls := range l.byKey {
		if samePath(key, other) {
			out = append(out, calls...)
		}
	}
	return out
}

// samePath reports whether the segments of two paths are equal, or both look like identifiers.
func samePath(a, b string) bool {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	if len(as) != len(bs) {
		return false
	}
	for i := range as {
		if as[i] != bs[i] && (!isID(as[i]) || !isID(bs[i])) {
			return false
		}
	}
	return true
}

// isID reports whether a segment of a path may be an identifier.
func isID(s string) bool { return values.IsDigits(s) || values.ClassOf(s) != "" }

// load returns a recorded exchange.
//
// Errors: those of reading.
func (l *library) load(ctx context.Context, id int64) (*tape, error) {
	l.mu.Lock()
	if e, ok := l.cache[id]; ok {
		l.lru.MoveToFront(e)
		l.mu.Unlock()
		return e.Value.(*tape), nil
	}
	l.mu.Unlock()

	// Reading takes long, so other requests need not wait for it.
	t, err := l.read(ctx, id)
	if err != nil {
		return nil, err
	}

	// Another request may have read the same exchange meanwhile.
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.cache[id]; ok {
		return e.Value.(*tape), nil
	}
	l.cache[id] = l.lru.PushFront(t)
	l.bytes += t.size
	for l.bytes > cacheBytes && l.lru.Len() > 1 {
		old := l.lru.Remove(l.lru.Back()).(*tape)
		delete(l.cache, old.ex.ID)
		l.bytes -= old.size
	}
	return t, nil
}

// read decodes a recorded exchange.
func (l *library) read(ctx context.Context, id int64) (*tape, error) {
	ex, err := decode.Decode(ctx, l.src, id, decode.Options{})
	if err != nil {
		return nil, err
	}
	t := &tape{ex: ex, swapped: live.Swap(ex)}
	sortMaps(t.swapped.Frames, captures.Down)
	t.target = targetOf(ex.URL, requestCall(&ex.Exchange))

	// The choice waits for the messages that precede the answer.
	answered := false
	for i := range ex.Frames {
		f := &ex.Frames[i]
		t.size += int64(len(f.Data) + len(f.Raw))
		switch {
		case f.Dir == captures.Down:
			answered = true
		case live.IsMessage(f):
			if t.up = append(t.up, &t.swapped.Frames[i]); !answered {
				t.first++
			}
		}
	}
	if err := t.readBody(ctx, l.src); err != nil {
		return nil, err
	}
	t.swapped.ResponseHeaders = requestHead(&ex.Exchange)
	return t, nil
}

// readBody reads the bytes of the response.
func (t *tape) readBody(ctx context.Context, src captures.Source) error {
	for c, err := range src.Chunks(ctx, t.ex.ID, 0) {
		if err != nil {
			return err
		}
		if c.Dir == captures.Down {
			t.body = append(t.body, c.Data...)
		}
	}
	t.size += int64(len(t.body))

	// The offsets of frames count from there.
	if encoding := t.wholeEncoding(); encoding != "" {
		if whole, err := envelope.Decompress(encoding, t.body, 0); err == nil && t.ex.Protocol == decode.SSE {
			t.body = whole
		}
	}
	return nil
}

// wholeEncoding returns the compression of the whole body.
func (t *tape) wholeEncoding() string {
	if e := strings.ToLower(t.ex.ResponseHeaders.Get("content-encoding")); e != "identity" {
		return e
	}
	return ""
}

// requestHead returns the headers of a request, with the parts of its path and its parameters among them: they may
// contain identifiers that the answer repeats.
func requestHead(ex *captures.Exchange) captures.Headers {
	h := ex.RequestHeaders[:len(ex.RequestHeaders):len(ex.RequestHeaders)]
	u, err := url.Parse(ex.URL)
	if err != nil {
		return h
	}
	for i, part := range strings.Split(u.Path, "/") {
		if isID(part) {
			h = append(h, captures.Header{Name: fmt.Sprintf(":path %d", i), Value: part})
		}
	}
	for name, list := range u.Query() {
		h = append(h, captures.Header{Name: ":query " + name, Value: list[0]})
	}
	return h
}

// sortMaps sorts the maps in the messages of a direction, so that the paths of equal values are equal.
func sortMaps(frames []decode.Frame, dir captures.Direction) {
	for i := range frames {
		f := &frames[i]
		if f.Dir != dir || f.Tree == nil || f.Err != nil {
			continue
		}
		if data, changed := values.SortEntries(f.Tree); changed {
			f.Data, f.Inner, f.Tree = data, nil, wire.Parse(data, wire.Options{})
		}
	}
}

// MethodOf returns the name by which requests find a recorded exchange: "/package.Service/Method", or the HTTP method
// and the path.
func MethodOf(ex *captures.Exchange) string { return keyOf(ex, requestCall(ex)) }

package mock

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
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

// noTypes are two nil descriptors, for request and response: the mock decodes messages without definitions.
var noTypes [2]protoreflect.MessageDescriptor

// A call is the index entry of a recorded exchange that can answer requests.
type call struct {
	// id is the number of the exchange in the capture.
	id int64
	// host is the host of the request's URL in lower case, with its port if it has one.
	host string

	// protocol is the protocol of the request, such as Connect or gRPC.
	protocol decode.Protocol
	// codec is the encoding of its messages, such as "proto" or "json".
	codec string
}

// A library is the index of a capture's calls, with a cache of the decoded ones.
//
// Limits: maxCalls, maxCandidates, cacheBytes.
type library struct {
	// src is the capture, as its clients saw it: after changes that rules made.
	src *store.ClientView

	// byKey are the calls by the name that keyOf returns.
	byKey map[string][]call
	// order are the numbers of all calls, in recorded order.
	order []int64
	// skipped are the exchanges that cannot answer requests, with the reason.
	skipped []Skipped
	// handshakes are the exchanges that opened WebSockets, by the exchange of the WebSocket.
	handshakes map[int64]int64

	// mu guards the fields below.
	mu sync.Mutex
	// cache are the elements of lru by exchange.
	cache map[int64]*list.Element
	// lru is a list of *tape, the most recently used first.
	lru list.List
	// bytes is the total size of the tapes in lru, in bytes.
	bytes int64
	// known are the identifiers of all tapes that were read so far, up to maxKnown.
	known map[string]bool
}

// A tape is a recorded exchange that was read and decoded in order to send its response.
type tape struct {
	// ex is the recorded exchange, decoded.
	ex *decode.Exchange

	// swapped is ex with the directions exchanged, so that the mock server appears as the client: package live then
	// schedules the recorded responses like requests.
	swapped *decode.Exchange

	// links are the relations between the messages of swapped. They are only compared with requests.
	links *live.Links

	// target is the path and the query of the request's URL as a message; nil for an RPC.
	target *decode.Frame

	// up are the messages of the recorded client.
	up []*decode.Frame
	// ids are the identifiers in each of them, by their position.
	ids []map[string]string
	// head are the identifiers in the headers, path and parameters of the request, by their position.
	head map[string]string

	// first is the number of messages in up that precede the server's first frame.
	first int

	// body is the body of the response as recorded; for server-sent events, without the compression of the whole
	// body.
	body []byte
	// ends are the offsets in body at which the messages of a WebSocket's server end; nil for other exchanges.
	ends []int64
	// last are the numbers of the server's frames with which a message of a WebSocket ends.
	last map[int]bool
	// handshake is the exchange that opened the WebSocket; nil for other exchanges.
	handshake *captures.Exchange

	// size is the memory of body and messages, in bytes.
	size int64
}

// newLibrary reads the index of a capture.
func newLibrary(ctx context.Context, src *store.Store) (*library, error) {
	l := &library{src: src.ClientView(), byKey: map[string][]call{}, cache: map[int64]*list.Element{}, handshakes: map[int64]int64{}, known: map[string]bool{}}
	relations, err := src.Relations(ctx, 0)
	if err != nil {
		return nil, err
	}
	for _, r := range relations {
		if r.Kind == captures.HandshakeOf && r.Capture == "" {
			l.handshakes[r.Exchange] = r.Target
		}
	}
	opened := slices.Collect(maps.Values(l.handshakes))
	for row, err := range src.Exchanges(ctx) {
		if err != nil {
			return nil, err
		}
		ex, err := l.src.Exchange(ctx, row.ID)
		if err != nil {
			return nil, err
		}
		if ex.ChangedProtocol() == "websocket" && slices.Contains(opened, ex.ID) {
			// The WebSocket answers.
			continue
		}
		if reason := l.unplayable(ex); reason != "" {
			l.skipped = append(l.skipped, Skipped{row.ID, reason})
			continue
		}
		// The index of a larger capture would take seconds at each start.
		if len(l.order) >= maxCalls {
			return nil, fmt.Errorf("the capture has more than %d calls, the limit of mock; 'unwire export' can write a smaller capture", maxCalls)
		}
		c := requestCall(ex)
		key := keyOf(ex, c)
		l.byKey[key] = append(l.byKey[key], call{id: ex.ID, host: hostOf(ex.URL), protocol: c.Protocol, codec: c.Codec})
		l.order = append(l.order, ex.ID)
	}
	if len(l.order) == 0 {
		return nil, errors.New("the capture has no HTTP call with an answer and no WebSocket, so mock cannot serve it; 'unwire ls' lists the exchanges")
	}
	return l, nil
}

// unplayable returns the reason why a recorded exchange cannot answer requests; "" if it can.
func (l *library) unplayable(ex *captures.Exchange) string {
	switch {
	case ex.Transport == captures.WebSocket && l.handshakes[ex.ID] == 0:
		return "the handshake of the WebSocket was not recorded"
	case ex.Transport == captures.WebSocket:
		return ""
	case ex.Transport != captures.HTTP:
		return "the exchange is a connection without HTTP"
	case ex.ChangedProtocol() != "":
		return "the connection changed to another protocol: " + ex.ChangedProtocol()
	case ex.Method == "CONNECT":
		return "the exchange is a tunnel"
	case ex.Status == 0:
		return "the exchange has no response"
	}
	return ""
}

// requestCall classifies an exchange by its request alone, as a server has to.
func requestCall(ex *captures.Exchange) decode.Call {
	request := *ex
	request.ResponseHeaders, request.Status = nil, 0
	return decode.Classify(&request)
}

// keyOf returns the name by which recorded calls are found: "/package.Service/Method" for an RPC, otherwise the HTTP
// method and the path, as "GET /path", or "websocket /path".
func keyOf(ex *captures.Exchange, c decode.Call) string {
	if c.Service != "" {
		return "/" + c.Service + "/" + c.RPC
	}
	u, err := url.Parse(ex.URL)
	method := ex.Method
	if ex.Transport == captures.WebSocket {
		method = string(captures.WebSocket)
	}
	if err != nil {
		return method + " " + ex.URL
	}
	return method + " " + u.EscapedPath()
}

// hostOf returns the host, and port if any, of a URL in lower case; "" if the URL is invalid.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// find returns the recorded calls with a name that keyOf returned. For plain HTTP without such a call, it returns
// those whose paths differ only in identifiers.
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

// load returns a recorded exchange by its number, from the cache or the capture.
//
// Errors: those of reading the capture.
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

	ids := t.allIDs()

	// Another request may have read the same exchange meanwhile.
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.cache[id]; ok {
		return e.Value.(*tape), nil
	}
	l.cache[id] = l.lru.PushFront(t)
	l.noteIDs(ids)
	l.bytes += t.size
	for l.bytes > cacheBytes && l.lru.Len() > 1 {
		old := l.lru.Remove(l.lru.Back()).(*tape)
		delete(l.cache, old.ex.ID)
		l.bytes -= old.size
	}
	return t, nil
}

// read reads and decodes a recorded exchange.
func (l *library) read(ctx context.Context, id int64) (*tape, error) {
	ex, err := decode.Decode(ctx, l.src, id, decode.Options{})
	if err != nil {
		return nil, err
	}
	t := &tape{ex: ex}
	if shake := l.handshakes[id]; shake != 0 {
		// The headers that came with the handshake may have identifiers.
		if t.handshake, err = l.src.Exchange(ctx, shake); err != nil {
			return nil, err
		}
		ex.RequestHeaders = t.handshake.RequestHeaders
	}
	t.swapped = live.Swap(ex)
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
			t.up, t.ids = append(t.up, &t.swapped.Frames[i]), append(t.ids, live.MessageIDs(&t.swapped.Frames[i]))
			if !answered {
				t.first++
			}
		}
	}
	if err := t.readBody(ctx, l.src); err != nil {
		return nil, err
	}
	t.noteMessages()
	t.swapped.ResponseHeaders = requestHead(&ex.Exchange)
	t.head = live.HeaderIDs(t.swapped.ResponseHeaders)
	t.links = live.NewServerLinks(t.swapped, noTypes)
	return t, nil
}

// readBody reads the recorded response body from the capture.
func (t *tape) readBody(ctx context.Context, src captures.Source) error {
	for c, err := range src.Chunks(ctx, t.ex.ID, 0) {
		if err != nil {
			return err
		}
		switch {
		case c.Dir == captures.Up:
		case t.handshake != nil:
			t.addMessage(c)
		default:
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

// wholeEncoding returns the Content-Encoding of the response; "" if there is none.
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

// sortMaps sorts the entries of protobuf maps in the messages of a direction by key, so that equal messages compare
// as equal.
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

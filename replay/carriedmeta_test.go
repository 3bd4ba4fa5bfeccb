package replay

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"

	"unwire/replay/live"
)

// A metaServer issues an identifier of 16 bytes in one call, and demands it in another one.
type metaServer struct {
	mu      sync.Mutex
	last    []byte // issued last
	issued  map[string]bool
	right   int // calls with the last one
	refused []string
}

// A metaSource is where the first call issues the identifier; take is how a client reads it there.
type metaSource struct {
	name string
	put  func(id []byte, r *connect.Response[raw])
	take func(r *connect.Response[raw]) []byte
}

func metaSources() []metaSource {
	unhex := func(s string) []byte { b, _ := hex.DecodeString(s); return b }
	unbin := func(s string) []byte { b, _ := connect.DecodeBinaryHeader(s); return b }
	return []metaSource{
		{"header", func(id []byte, r *connect.Response[raw]) { r.Header().Set("x-id", hex.EncodeToString(id)) }, func(r *connect.Response[raw]) []byte { return unhex(r.Header().Get("x-id")) }},
		{"trailer", func(id []byte, r *connect.Response[raw]) { r.Trailer().Set("x-id", hex.EncodeToString(id)) }, func(r *connect.Response[raw]) []byte { return unhex(r.Trailer().Get("x-id")) }},
		{"binary header", func(id []byte, r *connect.Response[raw]) { r.Header().Set("x-id-bin", connect.EncodeBinaryHeader(id)) }, func(r *connect.Response[raw]) []byte { return unbin(r.Header().Get("x-id-bin")) }},
		{"binary trailer", func(id []byte, r *connect.Response[raw]) {
			r.Trailer().Set("x-id-bin", connect.EncodeBinaryHeader(id))
		}, func(r *connect.Response[raw]) []byte { return unbin(r.Trailer().Get("x-id-bin")) }},
		{"message", func(id []byte, r *connect.Response[raw]) { r.Msg.b = textField(nil, 1, hex.EncodeToString(id)) }, func(r *connect.Response[raw]) []byte { return unhex(get(r.Msg.b, 1)) }},
		{"bytes", func(id []byte, r *connect.Response[raw]) { r.Msg.b = textField(nil, 1, string(id)) }, func(r *connect.Response[raw]) []byte { return []byte(get(r.Msg.b, 1)) }},
	}
}

// A metaSink is where a later request carries the identifier; is is how the server reads it there.
type metaSink struct {
	name string
	rest bool
	put  func(id []byte, h http.Header, u *url.URL) (message []byte)
	is   func(r *http.Request, message []byte) []byte
}

func metaSinks() []metaSink {
	unhex := func(s string) []byte { b, _ := hex.DecodeString(s); return b }
	return []metaSink{
		{
			"header", false, func(id []byte, h http.Header, _ *url.URL) []byte {
				h.Set("x-ticket", "Ticket "+hex.EncodeToString(id))
				return nil
			},
			func(r *http.Request, _ []byte) []byte {
				return unhex(strings.TrimPrefix(r.Header.Get("x-ticket"), "Ticket "))
			},
		},
		{
			"binary header", false, func(id []byte, h http.Header, _ *url.URL) []byte {
				h.Set("x-ticket-bin", connect.EncodeBinaryHeader(id))
				return nil
			},
			func(r *http.Request, _ []byte) []byte {
				b, _ := connect.DecodeBinaryHeader(r.Header.Get("x-ticket-bin"))
				return b
			},
		},
		{
			"message", false, func(id []byte, _ http.Header, _ *url.URL) []byte { return textField(nil, 1, hex.EncodeToString(id)) },
			func(_ *http.Request, m []byte) []byte { return unhex(get(m, 1)) },
		},
		{
			"bytes", false, func(id []byte, _ http.Header, _ *url.URL) []byte { return textField(nil, 1, string(id)) },
			func(_ *http.Request, m []byte) []byte { return []byte(get(m, 1)) },
		},
		{
			"path", true, func(id []byte, _ http.Header, u *url.URL) []byte {
				u.Path = "/items/" + hex.EncodeToString(id) + "/parts"
				return nil
			},
			func(r *http.Request, _ []byte) []byte { return unhex(strings.Split(r.URL.Path, "/")[2]) },
		},
		{
			"query", true, func(id []byte, _ http.Header, u *url.URL) []byte {
				u.Path, u.RawQuery = "/items/all", "n=1&id="+hex.EncodeToString(id)
				return nil
			},
			func(r *http.Request, _ []byte) []byte { return unhex(r.URL.Query().Get("id")) },
		},
		{
			"escaped query", true, func(id []byte, _ http.Header, u *url.URL) []byte {
				u.Path, u.RawQuery = "/items/all", "n=1&id="+url.QueryEscape(base64.StdEncoding.EncodeToString(id))
				return nil
			},
			func(r *http.Request, _ []byte) []byte {
				b, _ := base64.StdEncoding.DecodeString(r.URL.Query().Get("id"))
				return b
			},
		},
		{"escaped path", true, func(id []byte, _ http.Header, u *url.URL) []byte {
			text := base64.StdEncoding.EncodeToString(id)
			u.Path, u.RawPath = "/items/"+text, "/items/"+url.PathEscape(text)
			return nil
		}, func(r *http.Request, _ []byte) []byte {
			b, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.URL.Path, "/items/"))
			return b
		}},
	}
}

// check counts a call with an identifier.
func (s *metaServer) check(id []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if string(id) == string(s.last) {
		s.right++
		return nil
	}
	what := "another"
	if s.issued[string(id)] {
		what = "stale"
	}
	s.refused = append(s.refused, what)
	return connect.NewError(connect.CodeNotFound, errors.New("the identifier is "+what))
}

// serve issues identifiers in a source, and reads them in a sink.
func (s *metaServer) serve(t *testing.T, source metaSource, sink metaSink) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	codec := connect.WithCodec(rawCodec{})
	mux.Handle("/meta.v1.Meta/Open", connect.NewUnaryHandler("/meta.v1.Meta/Open", func(context.Context, *connect.Request[raw]) (*connect.Response[raw], error) {
		id := make([]byte, 16)
		_, _ = rand.Read(id)
		s.mu.Lock()
		s.last, s.issued[string(id)] = id, true
		s.mu.Unlock()
		r := connect.NewResponse(&raw{textField(nil, 2, "opened")})
		source.put(id, r)
		return r, nil
	}, codec))
	mux.Handle("/meta.v1.Meta/Use", connect.NewUnaryHandler("/meta.v1.Meta/Use", func(_ context.Context, r *connect.Request[raw]) (*connect.Response[raw], error) {
		if err := s.check(sink.is(&http.Request{Header: r.Header()}, r.Msg.b)); err != nil {
			return nil, err
		}
		return connect.NewResponse(&raw{textField(nil, 1, "used")}), nil
	}, codec))
	mux.HandleFunc("/items/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", "application/json")
		if err := s.check(sink.is(r, nil)); err != nil {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, `{"ok":true}`)
	})
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// Identifiers in headers, trailers, binary metadata and messages are followed to the headers, binary metadata, messages
// and URLs of later requests, in all protocols.
func TestIdentifiersInMetadata(t *testing.T) {
	for name, o := range map[string][]connect.ClientOption{"connect": nil, "gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb()}} {
		for _, source := range metaSources() {
			for _, sink := range metaSinks() {
				t.Run(name+"/"+source.name+" to "+sink.name, func(t *testing.T) {
					t.Parallel()
					followMetadata(t, source, sink, o)
				})
			}
		}
	}
}

// halvesOf is an identifier as two numbers.
func halvesOf(id []byte) (message []byte) {
	message = protowire.AppendFixed64(protowire.AppendTag(nil, 3, protowire.Fixed64Type), binary.BigEndian.Uint64(id))
	return protowire.AppendFixed64(protowire.AppendTag(message, 4, protowire.Fixed64Type), binary.BigEndian.Uint64(id[8:]))
}

// fromHalves is the identifier in a message of halvesOf.
func fromHalves(message []byte) []byte {
	const field = 9 // bytes with the tag
	if len(message) != 2*field {
		return nil
	}
	first, _ := protowire.ConsumeFixed64(message[1:])
	second, _ := protowire.ConsumeFixed64(message[1+field:])
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, first), second)
}

// Numbers and compressed tokens are followed to later requests.
func TestNumbersAndTokensOfEarlierCalls(t *testing.T) {
	numbers := metaSource{"numbers", func(id []byte, r *connect.Response[raw]) { r.Msg.b = halvesOf(id) }, func(r *connect.Response[raw]) []byte { return fromHalves(r.Msg.b) }}
	unpack := func(s string) []byte {
		b, _ := base64.StdEncoding.DecodeString(s)
		id, _ := hex.DecodeString(strings.TrimSuffix(strings.TrimPrefix(unpacked("gzip", b), `{"id":"`), `"}`))
		return id
	}
	// Each compression of the same token differs, so that only the server's own text counts.
	var mu sync.Mutex
	texts := map[string]string{}
	token := metaSource{"token", func(id []byte, r *connect.Response[raw]) {
		text := base64.StdEncoding.EncodeToString(packedIn("gzip", `{"id":"`+hex.EncodeToString(id)+`"}`))
		mu.Lock()
		texts[string(id)] = text
		mu.Unlock()
		r.Msg.b = textField(nil, 1, text)
	}, func(r *connect.Response[raw]) []byte { return unpack(get(r.Msg.b, 1)) }}
	for _, c := range []struct {
		source metaSource
		sink   metaSink
	}{
		{numbers, metaSink{"numbers", false, func(id []byte, _ http.Header, _ *url.URL) []byte { return halvesOf(id) }, func(_ *http.Request, m []byte) []byte { return fromHalves(m) }}},
		{numbers, metaSinks()[2]},
		{token, metaSink{"token", false, func(id []byte, _ http.Header, _ *url.URL) []byte {
			mu.Lock()
			defer mu.Unlock()
			return textField(nil, 1, texts[string(id)])
		}, func(_ *http.Request, m []byte) []byte {
			mu.Lock()
			defer mu.Unlock()
			id := unpack(get(m, 1))
			if texts[string(id)] != get(m, 1) {
				return nil
			}
			return id
		}}},
	} {
		t.Run(c.source.name+" to "+c.sink.name, func(t *testing.T) {
			t.Parallel()
			followMetadata(t, c.source, c.sink, nil)
		})
	}
}

func followMetadata(t *testing.T, source metaSource, sink metaSink, o []connect.ClientOption) {
	t.Helper()
	s := &metaServer{issued: map[string]bool{}}
	l := newLab(t)
	server := s.serve(t, source, sink)
	l.server = &testServer{Server: server}
	l.tap.Next = server.Client().Transport
	o = append(slices.Clone(o), connect.WithCodec(rawCodec{}))
	call := func(name string) *connect.Client[raw, raw] {
		return connect.NewClient[raw, raw](l.http, server.URL+"/meta.v1.Meta/"+name, o...)
	}
	opened, err := call("Open").CallUnary(t.Context(), connect.NewRequest(&raw{textField(nil, 1, "hello")}))
	if err != nil {
		t.Fatal(err)
	}
	open := l.recorded()
	id := source.take(opened)
	u := *parsedURL(t, server.URL)
	header := http.Header{}
	message := sink.put(id, header, &u)
	if sink.rest {
		resp, err := l.http.Get(u.String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	} else {
		r := connect.NewRequest(&raw{message})
		for k, v := range header {
			r.Header()[k] = v
		}
		if _, err := call("Use").CallUnary(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	use := l.recorded()
	if s.right != 1 {
		t.Fatalf("the call that is recorded has a wrong identifier: %q", s.refused)
	}
	first, err := live.Issuers(t.Context(), l.store, use)
	if err != nil || !slices.Equal(first, []int64{open}) {
		t.Fatalf("before it: %v, %v", first, err)
	}
	for range 3 {
		o := l.options()
		o.Issued = &live.IDs{}
		r, err := l.plan(open, o).Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.learnIDs(o.Issued)
		if r = l.replay(use, o); r.Code != "ok" && r.Code != "" {
			t.Errorf("%s %s: %s", r.Comparison, r.Code, r.Message)
		}
	}
	if s.right != 4 || len(s.refused) > 0 {
		t.Errorf("%d of 4 calls had the live identifier: %q", s.right, s.refused)
	}
}

func parsedURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

package mitm

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"unwire/captures"
	"unwire/mitm/rules"
)

// smallWindows are the smallest windows that HTTP/2 starts with.
const smallWindows = 65_535

// sizeRules grow messages of each kind of call by 10 MB, and shrink others to nothing, in both directions.
const sizeRules = `rules:
  - {match: 'method:Unary dir:up path:1=grow', replace: 'file:big'}
  - {match: 'method:Unary dir:up path:1=shrink', replace: 'hex:'}
  - {match: 'method:Unary dir:down path:1="echo grow down"', replace: 'file:big'}
  - {match: 'method:Unary dir:down path:1="echo shrink down"', replace: 'hex:'}
  - {match: 'method:Download dir:up path:1=grow', replace: 'file:big'}
  - {match: 'method:Download dir:down path:1="d 1"', replace: 'file:big'}
  - {match: 'method:Download dir:down path:1="d 2"', replace: 'hex:'}
  - {match: 'method:Upload dir:up path:1=1', replace: 'file:big'}
  - {match: 'method:Upload dir:up path:1=2', replace: 'hex:'}
  - {match: 'method:Upload dir:down frame:0 len>1MB', replace: 'hex:'}
  - {match: 'method:Chat dir:up path:1=3', replace: 'file:big'}
  - {match: 'method:Chat dir:up path:1=4', replace: 'hex:'}
  - {match: 'method:Chat dir:down path:1="ack 5"', replace: 'file:big'}
  - {match: 'method:Chat dir:down path:1="ack 6"', replace: 'hex:'}
`

// newSmallOrigin starts the echo service with small windows.
func newSmallOrigin(t *testing.T, h2 bool) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(newEchoServer())
	s.EnableHTTP2 = h2
	s.Config.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerConnection: smallWindows, MaxReceiveBufferPerStream: smallWindows}
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// TestRulesGrowAndShrink: messages of all kinds of calls grow by 2 MB and shrink to nothing through windows of 64 KB, in
// all protocols, and everything else arrives as it was. UNWIRE_LONG=1 makes it 10 MB.
func TestRulesGrowAndShrink(t *testing.T) {
	t.Parallel()
	// It hardly compresses.
	random := rand.NewChaCha8([32]byte{1})
	noise := make([]byte, 1_500_000)
	if os.Getenv("UNWIRE_LONG") != "" {
		noise = make([]byte, 7_500_000)
	}
	_, _ = random.Read(noise)
	big := base64.StdEncoding.EncodeToString(noise)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "big"), oneField(big), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(path, []byte(sizeRules), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := rules.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	short := func(s string) string { return strings.ReplaceAll(s, big, "BIG") }

	for _, h2 := range []bool{false, true} {
		for name, opts := range map[string][]connect.ClientOption{
			"Connect": nil, "gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb()}, "Connect gzip": {connect.WithSendGzip()},
		} {
			if !h2 && name == "gRPC" {
				continue // gRPC needs HTTP/2
			}
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", name, h2), func(t *testing.T) {
				origin := newSmallOrigin(t, h2)
				b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) {
					o.Rewrite = rules.New(set, rules.Options{Report: func(text string) { t.Error(text) }})
				})
				c := b.client(h2)
				c.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerConnection: smallWindows, MaxReceiveBufferPerStream: smallWindows}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				s := sizes{t: t, ctx: ctx, url: origin.URL + echoService, client: c, opts: opts}
				got := slices.Concat(s.unary("grow", "shrink", "grow down", "shrink down", "stay"), s.download("x"), s.download("grow"), s.upload())
				want := []string{
					"echo BIG", "echo ", "BIG", "", "echo stay",
					"x 0", "x 1", "x 2", "x 3", "x 4", "BIG 0", "BIG 1", "BIG 2", "BIG 3", "BIG 4",
				}
				want = append(want, "")
				if h2 {
					got = append(got, s.chat(9)...)
					want = append(want, "ack 0", "ack 1", "ack 2", "ack BIG", "ack ", "BIG", "", "ack 7", "ack 8")
				}
				calls := 9
				if h2 {
					calls++
				}
				got = append(got, s.download("d")...)
				want = append(want, "d 0", "BIG", "", "d 3", "d 4")
				for i := range got {
					got[i] = short(got[i])
				}
				if !slices.Equal(got, want) {
					t.Errorf("got %.200q\nwant %q", got, want)
				}
				for _, x := range b.recorded(calls) {
					if x.Outcome != captures.Complete {
						t.Errorf("%s: %s %s", x.URL, x.Outcome, x.Error)
					}
				}
			})
		}
	}
}

// sizes makes calls and returns the texts of the answers.
type sizes struct {
	t      *testing.T
	ctx    context.Context
	url    string
	client *http.Client
	opts   []connect.ClientOption
}

func (s *sizes) to(method string) *connect.Client[text, text] {
	return connect.NewClient[text, text](s.client, s.url+method, s.opts...)
}

func (s *sizes) fail(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *sizes) unary(values ...string) (got []string) {
	s.t.Helper()
	for _, v := range values {
		res, err := s.to("Unary").CallUnary(s.ctx, connect.NewRequest(wrapperspb.String(v)))
		s.fail(err)
		if res.Trailer().Get("X-Tail") != "t" {
			s.t.Errorf("trailers of %q: %v", v, res.Trailer())
		}
		got = append(got, res.Msg.GetValue())
	}
	return got
}

func (s *sizes) download(value string) (got []string) {
	s.t.Helper()
	stream, err := s.to("Download").CallServerStream(s.ctx, connect.NewRequest(wrapperspb.String(value)))
	s.fail(err)
	for stream.Receive() {
		got = append(got, stream.Msg().GetValue())
	}
	s.fail(stream.Err())
	if stream.ResponseTrailer().Get("X-Tail") != "t" {
		s.t.Errorf("trailers: %v", stream.ResponseTrailer())
	}
	return got
}

func (s *sizes) upload() []string {
	s.t.Helper()
	stream := s.to("Upload").CallClientStream(s.ctx)
	for i := range 4 {
		s.fail(stream.Send(wrapperspb.String(fmt.Sprint(i))))
	}
	res, err := stream.CloseAndReceive()
	s.fail(err)
	return []string{res.Msg.GetValue()}
}

func (s *sizes) chat(rounds int) (got []string) {
	s.t.Helper()
	stream := s.to("Chat").CallBidiStream(s.ctx)
	for i := range rounds {
		s.fail(stream.Send(wrapperspb.String(fmt.Sprint(i))))
		m, err := stream.Receive()
		s.fail(err)
		got = append(got, m.GetValue())
	}
	s.fail(stream.CloseRequest())
	if _, err := stream.Receive(); !errors.Is(err, io.EOF) {
		s.t.Errorf("the stream ends with %v", err)
	}
	s.fail(stream.CloseResponse())
	return got
}

package pcap

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/mitm"
	"unwire/mitm/ca"
	"unwire/proto"
	"unwire/replay/standin"
	"unwire/schema"
)

const turnScript = `{"v":1,"turns":[{"steps":[
	{"heartbeat":2},{"echo":true},{"thinking":"Let me see.","split":[3]},
	{"text":"The answer is long: ${prompt} ${prompt} ${prompt} ${prompt}","split":[5,5,5,50000],"pace_ms":1},
	{"tokens":12},{"turn_ended":{"inputTokens":"1200","outputTokens":"96"}}]}]}`

// startStandin serves the reconstructed API, and returns the roots to trust.
func startStandin(t testing.TB) (*standin.Server, *x509.CertPool) {
	t.Helper()
	s, err := standin.New(standin.Options{Script: []byte(turnScript)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	ca, err := os.ReadFile(s.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("no CA")
	}
	return s, roots
}

// startProxy records into a store of its own; stop ends it and gives the store.
func startProxy(t testing.TB, upstream *x509.CertPool) (addr *url.URL, trusted *x509.CertPool, stop func() *store.Store) {
	t.Helper()
	dir := t.TempDir()
	authority, err := ca.Load(filepath.Join(dir, "ca"))
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := store.Create(filepath.Join(dir, "proxy.uwc"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := mitm.New(mitm.Options{CA: authority, Store: recorded, UpstreamRoots: upstream})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	trusted = x509.NewCertPool()
	trusted.AddCert(authority.Certificate)
	t.Cleanup(func() { _ = recorded.Close() })
	return &url.URL{Scheme: "http", Host: l.Addr().String()}, trusted, func() *store.Store {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = p.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := recorded.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		return recorded
	}
}

// turn plays a turn of the stand-in's Run with connect-go, and returns how many
// messages the server sent.
func turn(t testing.TB, c *http.Client, base, prompt string) int {
	t.Helper()
	defs, err := schema.Load(t.Context(), proto.Files)
	if err != nil {
		t.Fatal(err)
	}
	md := defs.Method("agent.v1.AgentService", "Run")
	rpc := connect.NewClient[dynamicpb.Message, dynamicpb.Message](c, base+"/agent.v1.AgentService/Run",
		connect.WithSchema(md), connect.WithSendGzip(), connect.WithCompressMinBytes(100),
		connect.WithResponseInitializer(func(_ connect.Spec, v any) error {
			if m, ok := v.(*dynamicpb.Message); ok {
				*m = *dynamicpb.NewMessage(md.Output())
			}
			return nil
		}))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	stream := rpc.CallBidiStream(ctx)
	stream.RequestHeader().Set("Authorization", "Bearer a-made-up-token-4711")
	text, err := json.Marshal(prompt)
	if err != nil {
		t.Fatal(err)
	}
	first := dynamicpb.NewMessage(md.Input())
	err = protojson.Unmarshal([]byte(`{"runRequest":{"action":{"userMessageAction":{"userMessage":{"text":`+string(text)+
		`,"messageId":"m-1"}}},"modelDetails":{"modelId":"composer-1"},"conversationId":"c-1"}}`), first)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(first); err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		if _, err := stream.Receive(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if n++; n == 3 { // a second message within the stream
			beat := dynamicpb.NewMessage(md.Input())
			if err := protojson.Unmarshal([]byte(`{"clientHeartbeat":{}}`), beat); err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(beat); err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(stream.CloseRequest(), stream.CloseResponse()); err != nil {
		t.Fatal(err)
	}
	return n
}

// tapped is an HTTP/2 client whose connections are recorded.
func tapped(t testing.TB, p *tap, roots *x509.CertPool, maxVersion uint16, proxy *url.URL) *http.Client {
	tr := &http.Transport{
		DialContext: p.dial, Protocols: new(http.Protocols), DisableCompression: true,
		TLSClientConfig: p.clientTLS(&tls.Config{RootCAs: roots, MaxVersion: maxVersion}),
	}
	tr.Protocols.SetHTTP2(true)
	if proxy != nil {
		tr.Proxy = http.ProxyURL(proxy)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// TestSameAsProxy records turns by the proxy and, on the way to it, as packets,
// and compares what both captures decode to. The way leads through a CONNECT
// tunnel.
func TestSameAsProxy(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]uint16{"tls12": tls.VersionTLS12, "tls13": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			s, roots := startStandin(t)
			addr, ca, stop := startProxy(t, roots)
			p := new(tap)
			c := tapped(t, p, ca, version, addr)
			for _, prompt := range []string{"What does Backoff do?", strings.Repeat("A long question. ", 4000)} {
				if n := turn(t, c, s.URL(), prompt); n < 10 {
					t.Fatalf("the server sent %d messages", n)
				}
			}
			c.CloseIdleConnections()
			store := stop()
			proxied := exchangesOf(t, store)
			list := p.packets(t, linkEthernet)
			for _, order := range [][]rawPacket{list, shuffled(list)} {
				got := importFile(t, pcapng(t, linkEthernet, order, p.keys.Bytes()), nil)
				if len(got.exchanges) != 2 || len(proxied) != 2 {
					t.Fatalf("%d exchanges imported, %d proxied; %+v", len(got.exchanges), len(proxied), got.conns)
				}
				for i, ex := range got.exchanges {
					compareExchanges(t, store, proxied[i], got.store, ex)
				}
			}
		})
	}
}

func compareExchanges(t *testing.T, aStore *store.Store, a *captures.Exchange, bStore *store.Store, b *captures.Exchange) {
	t.Helper()
	fa, fb := framesOf(t, aStore, a.ID), framesOf(t, bStore, b.ID)
	if len(fa[captures.Up]) < 2 || len(fa[captures.Down]) < 10 {
		t.Fatalf("%d and %d frames were proxied", len(fa[0]), len(fa[1]))
	}
	if diff := cmp.Diff(fa, fb); diff != "" {
		t.Errorf("frames (-proxy +import):\n%s", diff)
	}
	if a.URL != b.URL || a.Method != b.Method || a.HTTP != b.HTTP || a.Status != b.Status || a.Outcome != b.Outcome {
		t.Errorf("proxy %+v\nimport %+v", a, b)
	}
	for _, h := range []struct{ a, b captures.Headers }{
		{a.RequestHeaders, b.RequestHeaders},
		{a.ResponseHeaders, b.ResponseHeaders},
		{a.RequestTrailers, b.RequestTrailers},
		{a.ResponseTrailers, b.ResponseTrailers},
	} {
		if diff := cmp.Diff(canonical(h.a), canonical(h.b)); diff != "" {
			t.Errorf("headers (-proxy +import):\n%s", diff)
		}
	}
}

// canonical sorts a section by its names; placeholders of secrets differ from
// capture to capture.
func canonical(h captures.Headers) captures.Headers {
	h = slices.Clone(h)
	for i := range h {
		h[i].Name = strings.ToLower(h[i].Name)
		if before, _, found := strings.Cut(h[i].Value, "[redacted:"); found {
			h[i].Value = before + "[redacted]"
		}
	}
	slices.SortStableFunc(h, func(a, b captures.Header) int { return strings.Compare(a.Name, b.Name) })
	return h
}

// TestRedaction looks for a token in the file of a capture.
func TestRedaction(t *testing.T) {
	s, roots := startStandin(t)
	p := new(tap)
	turn(t, tapped(t, p, roots, tls.VersionTLS13, nil), s.URL(), "Hello.")
	got := importFile(t, pcapng(t, linkEthernet, p.packets(t, linkEthernet), p.keys.Bytes()), nil)
	if len(got.exchanges) != 1 || !strings.Contains(got.exchanges[0].RequestHeaders.Get("authorization"), "[redacted:") {
		t.Fatalf("%+v", got.exchanges)
	}
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(got.store.Path + suffix)
		if err == nil && bytes.Contains(data, []byte("a-made-up-token-4711")) {
			t.Errorf("the token is in the capture%s", suffix)
		}
	}
}

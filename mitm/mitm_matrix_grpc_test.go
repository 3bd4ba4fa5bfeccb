package mitm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// grpcServer serves any method on grpc-go's own HTTP/2, by the method's name.
func grpcServer(t *testing.T) *httptest.Server {
	// Only its certificate and its place in a bench are httptest's.
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	t.Cleanup(s.Close)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	creds := credentials.NewTLS(&tls.Config{Certificates: s.TLS.Certificates, NextProtos: []string{protoH2}})
	g := grpc.NewServer(grpc.Creds(creds), grpc.MaxRecvMsgSize(16<<20), grpc.UnknownServiceHandler(serveGRPC))
	go func() { _ = g.Serve(ln) }()
	t.Cleanup(g.Stop)
	s.URL = "https://" + ln.Addr().String()
	return s
}

func serveGRPC(_ any, s grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(s)
	md, _ := metadata.FromIncomingContext(s.Context())
	_ = s.SetHeader(metadata.Pairs("x-head", "h", "x-got-bin", strings.Join(md.Get("x-sent-bin"), ",")))
	s.SetTrailer(metadata.Pairs("x-tail", "t"))
	name := method[strings.LastIndex(method, "/")+1:]
	if name == "HeaderFirst" {
		_ = s.SendHeader(nil)
	}
	if name == "TrailersOnly" {
		return status.Error(codes.PermissionDenied, "not you: 100% ä")
	}
	var all []string
	for {
		m := new(wrapperspb.StringValue)
		err := s.RecvMsg(m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		all = append(all, m.GetValue())
		switch name {
		case "Bidi", "HeaderFirst":
			if err := s.SendMsg(wrapperspb.String("ack " + m.GetValue())); err != nil {
				return err
			}
		case "Wait":
			<-s.Context().Done()
			return s.Context().Err()
		}
	}
	switch name {
	case "Unary", "ClientStream":
		return s.SendMsg(wrapperspb.String(strings.Join(all, "+")))
	case "ServerStream":
		for i := range 20 {
			if err := s.SendMsg(wrapperspb.String(fmt.Sprint(i))); err != nil {
				return err
			}
		}
	case "Fail", "FailLater":
		if name == "FailLater" {
			_ = s.SendMsg(wrapperspb.String("first"))
		}
		st, _ := status.New(codes.FailedPrecondition, "no").WithDetails(structpb.NewStringValue("because"))
		return st.Err()
	}
	return nil
}

// grpcChecks are made by grpc-go's client, against grpc-go's server, in lanes
// of their own.
func grpcChecks(t *testing.T) []check {
	origin := grpcServer(t)
	lanes := make(map[string]*lane)
	for _, w := range slices.Concat(ways, ruleWays[1:]) {
		lanes[w.name] = newLane(t, w, origin, nil)
	}
	conns := make(map[string]*grpc.ClientConn)
	var mu sync.Mutex
	conn := func(name string) *grpc.ClientConn {
		mu.Lock()
		defer mu.Unlock()
		if conns[name] == nil {
			conns[name] = lanes[name].dialGRPC(t, strings.TrimPrefix(origin.URL, "https://"))
		}
		return conns[name]
	}
	var out []check
	for _, c := range []struct {
		name, want string
		run        func(ctx context.Context, c *grpc.ClientConn) string
	}{
		{"unary", `"hello" OK`, grpcUnary("Unary", "hello")},
		{"unary, empty message", `"" OK`, grpcUnary("Unary", "")},
		{"unary, 3 MB", "3145728 bytes", grpcUnary("Unary", strings.Repeat("0123456789abcdef", 3<<16))},
		{"unary, gzip", "65536 bytes", grpcUnary("Unary", strings.Repeat("gzip", 16<<10), grpc.UseCompressor(gzip.Name))},
		{"error with details", "because", grpcUnary("Fail", "x")},
		{"trailers only", "not you: 100% ä", grpcUnary("TrailersOnly", "x")},
		{"no answer at all", "cardinality", grpcUnary("Nothing", "x")},
		{"server stream", "20 messages", grpcStream("ServerStream", false, 1)},
		{"server stream, error at its end", "FailedPrecondition", grpcStream("FailLater", false, 1)},
		{"client stream", `"0+1+2+3+4"`, grpcStream("ClientStream", false, 5)},
		{"bidi in lock-step", "30 messages", grpcStream("Bidi", true, 30)},
		{"bidi, headers first", "4 messages", grpcStream("HeaderFirst", true, 4)},
		{"bidi, nothing sent", "0 messages", grpcStream("Bidi", false, 0)},
		{"deadline", "DeadlineExceeded", func(ctx context.Context, c *grpc.ClientConn) string {
			ctx, cancel := context.WithTimeout(ctx, 150*time.Millisecond)
			defer cancel()
			// Client and server both keep the deadline. Which of them ends the call first is chance without a proxy, too.
			// It decides the message and whether there are trailers, so only the code is compared.
			err := c.Invoke(ctx, "/unwire.test.v1.Any/Wait", wrapperspb.String("x"), new(wrapperspb.StringValue))
			return status.Code(err).String()
		}},
		{"cancel", "Canceled", func(ctx context.Context, c *grpc.ClientConn) string {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(100*time.Millisecond, cancel)
			return grpcUnary("Wait", "x")(ctx, c)
		}},
		{"200 at once", "200 the same", grpcMany},
	} {
		out = append(out, check{client: "grpc-go", name: c.name, want: c.want, run: func(t *testing.T, l *lane) string {
			ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
			defer cancel()
			return c.run(ctx, conn(l.name))
		}})
	}
	return out
}

func (l *lane) dialGRPC(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	creds := insecure.NewCredentials()
	if !l.clear() {
		creds = credentials.NewTLS(&tls.Config{RootCAs: l.roots, ServerName: "127.0.0.1"})
	}
	c, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(creds), grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			return l.connect(t, addr)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
	defer cancel()
	c.Connect() // what is cancelled soon is to be a call, not the wait for a connection
	for state := c.GetState(); state != connectivity.Ready && c.WaitForStateChange(ctx, state); state = c.GetState() {
	}
	return c
}

func grpcUnary(method, value string, opts ...grpc.CallOption) func(context.Context, *grpc.ClientConn) string {
	return func(ctx context.Context, c *grpc.ClientConn) string {
		var head, tail metadata.MD
		ctx = metadata.AppendToOutgoingContext(ctx, "x-sent-bin", "\x00\xff")
		res := new(wrapperspb.StringValue)
		err := c.Invoke(ctx, "/unwire.test.v1.Any/"+method, wrapperspb.String(value), res, append(opts, grpc.Header(&head), grpc.Trailer(&tail))...)
		return fmt.Sprintf("%d bytes %.20q %s header %v trailer %v", len(res.GetValue()), res.GetValue(), grpcStatus(err), head, tail)
	}
}

func grpcStatus(err error) string {
	s := status.Convert(err)
	return fmt.Sprintf("%v %q %v", s.Code(), s.Message(), s.Details())
}

func grpcStream(method string, lockStep bool, n int) func(context.Context, *grpc.ClientConn) string {
	return func(ctx context.Context, c *grpc.ClientConn) string {
		s, err := c.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/unwire.test.v1.Any/"+method)
		if err != nil {
			return grpcStatus(err)
		}
		if method == "HeaderFirst" {
			if _, err := s.Header(); err != nil {
				return grpcStatus(err)
			}
		}
		var got []string
		recv := func() error {
			m := new(wrapperspb.StringValue)
			if err := s.RecvMsg(m); err != nil {
				return err
			}
			got = append(got, m.GetValue())
			return nil
		}
		for i := range n {
			if err := s.SendMsg(wrapperspb.String(fmt.Sprint(i))); err != nil {
				break // what is received tells why
			}
			if lockStep {
				if err := recv(); err != nil {
					return grpcStatus(err)
				}
			}
		}
		_ = s.CloseSend()
		for err = recv(); err == nil; {
			err = recv()
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		head, _ := s.Header()
		return fmt.Sprintf("%d messages %q %s header %v trailer %v", len(got), got, grpcStatus(err), head, s.Trailer())
	}
}

func grpcMany(ctx context.Context, c *grpc.ClientConn) string {
	answers := make([]string, 200)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = grpcStream("Bidi", true, 3)(ctx, c) })
	}
	wg.Wait()
	same := 0
	for _, a := range answers {
		if a == answers[0] {
			same++
		}
	}
	return fmt.Sprintf("%d the same: %s", same, answers[0])
}

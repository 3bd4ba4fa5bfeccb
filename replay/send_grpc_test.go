package replay

import (
	"context"
	"io"
	"log"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// newGRPCServer is a grpc-go server of two methods of the test service, over
// TLS and HTTP/2.
func newGRPCServer(t *testing.T) *httptest.Server {
	t.Helper()
	g := grpc.NewServer()
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: "test.v1.Test", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Say", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var in words
			if err := decode(&in); err != nil {
				return nil, err
			}
			if in.GetValue() == "bad" {
				return nil, status.Error(codes.InvalidArgument, "not bad")
			}
			return wrapperspb.String("you said " + in.GetValue()), nil
		}}},
		Streams: []grpc.StreamDesc{{StreamName: "Issue", ServerStreams: true, ClientStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
			var in words
			if err := stream.RecvMsg(&in); err != nil {
				return err
			}
			for range rounds {
				id := randomHex(12)
				if err := stream.SendMsg(wrapperspb.String(id)); err != nil {
					return err
				}
				if err := stream.RecvMsg(&in); err != nil {
					return err
				}
				if in.GetValue() != id {
					return status.Errorf(codes.FailedPrecondition, "%s is not %s", in.GetValue(), id)
				}
			}
			return nil
		}}},
	}, nil)
	s := httptest.NewUnstartedServer(g)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// A grpc-go server is another side than connect-go's own gRPC.
func TestGRPCGo(t *testing.T) {
	l := newLab(t)
	l.server.Close()
	l.server.Server = newGRPCServer(t)
	l.tap.Next = l.server.Client().Transport
	id := l.say("hello", connect.WithGRPC())
	l.expect(l.replay(id, l.withToken(l.options())), Same, FromServer, "ok")
	l.expect(l.replay(id, l.withToken(l.options("set 1=other"))), Differs, FromServer, "ok")
	l.expect(l.replay(id, l.withToken(l.options("set 1=bad"))), Rejected, FromServer, "invalid_argument")
	r := l.replay(lockstep(l, "Issue", wrapperspb.String("begin"), connect.WithGRPC()), l.options())
	l.expect(r, Same, FromServer, "ok")
	if r.Sent != rounds+1 || r.Received != rounds {
		t.Errorf("%d up, %d down", r.Sent, r.Received)
	}
}

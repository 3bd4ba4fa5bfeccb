package replay

import (
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// transport is a kind of call over a protocol, in a codec or compression, with
// an edit that changes its answer; "" where there is none.
type transport struct {
	name   string
	record func(l *lab, o ...connect.ClientOption) int64
	o      []connect.ClientOption
	edit   string
}

func transports() (list []transport) {
	protocols := map[string]connect.ClientOption{"connect": nil, "grpc": connect.WithGRPC(), "grpc-web": connect.WithGRPCWeb()}
	forms := map[string]connect.ClientOption{"proto": nil, "json": connect.WithProtoJSON(), "gzip": connect.WithSendGzip()}
	calls := map[string]func(l *lab, o ...connect.ClientOption) int64{
		"unary": func(l *lab, o ...connect.ClientOption) int64 { return l.say("hello", o...) },
		"get": func(l *lab, o ...connect.ClientOption) int64 {
			return l.say("hello", append(o, connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects))...)
		},
		"server stream": countTo,
		"client stream": joinAll,
		"bidi stream": func(l *lab, o ...connect.ClientOption) int64 {
			return lockstep(l, "Issue", wrapperspb.String("begin"), o...)
		},
	}
	edits := map[string][2]string{ // of proto, of JSON
		"unary": {"set 1=other", "set =other"}, "get": {"set 1=other", "set =other"},
		"server stream": {"set 1=4", "set =4"}, "client stream": {"set @1 1=other", "set @1 =other"},
	}
	for call, record := range calls {
		for protocol, p := range protocols {
			for form, f := range forms {
				c := transport{name: call + " " + protocol + " " + form, record: record, edit: edits[call][0]}
				if form == "json" {
					c.edit = edits[call][1]
				}
				for _, option := range []connect.ClientOption{p, f} {
					if option != nil {
						c.o = append(c.o, option)
					}
				}
				if call != "get" || protocol == "connect" {
					list = append(list, c)
				}
			}
		}
	}
	return list
}

// again replays a call as it was, and with its edit.
func (c *transport) again(l *lab) {
	l.Helper()
	id := c.record(l, c.o...)
	l.expect(l.replay(id, l.withToken(l.options())), Same, FromServer, "ok")
	if c.edit != "" {
		l.expect(l.replay(id, l.withToken(l.options(c.edit))), Differs, FromServer, "ok")
	}
}

// Every kind of call over every protocol, codec and compression that a real
// server offers is sent again: the same unedited, and told apart edited.
func TestTransports(t *testing.T) {
	for _, c := range transports() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.again(newLab(t))
		})
	}
}

func countTo(l *lab, o ...connect.ClientOption) int64 {
	l.Helper()
	stream, err := connect.NewClient[number, words](l.http, l.server.URL+"/test.v1.Test/Count", o...).CallServerStream(l.Context(), connect.NewRequest(wrapperspb.UInt32(5)))
	if err != nil {
		l.Fatal(err)
	}
	for stream.Receive() {
	}
	if err := stream.Err(); err != nil {
		l.Fatal(err)
	}
	return l.recorded()
}

func joinAll(l *lab, o ...connect.ClientOption) int64 {
	l.Helper()
	stream := connect.NewClient[words, words](l.http, l.server.URL+"/test.v1.Test/Join", o...).CallClientStream(l.Context())
	for _, s := range []string{"a", "b", "c"} {
		if err := stream.Send(wrapperspb.String(s)); err != nil {
			l.Fatal(err)
		}
	}
	if _, err := stream.CloseAndReceive(); err != nil {
		l.Fatal(err)
	}
	return l.recorded()
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcreflection "google.golang.org/grpc/reflection"
	v1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/schema"
)

// talkTexts define a service with methods of all kinds.
var talkTexts = map[string]string{
	"talk/note.proto": `syntax = "proto3"; package talk.v1;
enum Mood { MOOD_UNSPECIFIED = 0; MOOD_GLAD = 1; }
message Note { string text = 1; int64 number = 2; repeated string words = 3; bytes data = 4; Mood mood = 5; map<string, Note> more = 6; }
`,
	"talk/talk.proto": `syntax = "proto3"; package talk.v1; import "talk/note.proto";
service Talk {
  rpc Echo(Note) returns (Note);
  rpc Count(Note) returns (stream Note);
  rpc Sum(stream Note) returns (Note);
  rpc Chat(stream Note) returns (stream Note);
  rpc Fail(Note) returns (Note);
}
`,
}

// rpcServer serves talk.v1.Talk on loopback until it is killed:
//
//	rpcserver connect|grpc|noreflection|http1only|http2only [PREFIX]
//
// GET /handlers of connect-go reports how often a handler ran, and /authorization the last
// authorization header.
func rpcServer() {
	if err := serveCalls(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveCalls(args []string) error {
	s, err := schema.FromTexts(talkTexts)
	if err != nil {
		return err
	}
	files := &protoregistry.Files{}
	for _, f := range s.Files {
		if err := files.RegisterFile(f); err != nil {
			return err
		}
	}
	talk := &talkService{files: files}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	prefix := ""
	if len(args) > 1 {
		prefix = args[1]
	}
	line, err := json.Marshal(map[string]string{"url": "http://" + l.Addr().String() + prefix})
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	if args[0] == "grpc" {
		return talk.grpcServer().Serve(l)
	}
	server := &http.Server{Handler: http.StripPrefix(prefix, talk.connectHandler(args[0] != "noreflection")), Protocols: new(http.Protocols), ReadHeaderTimeout: time.Minute}
	server.Protocols.SetHTTP1(args[0] != "http2only")
	server.Protocols.SetUnencryptedHTTP2(args[0] != "http1only")
	return server.Serve(l)
}

// A talkService has the handlers.
type talkService struct {
	files         *protoregistry.Files
	ran           atomic.Int64
	authorization atomic.Value
}

func (t *talkService) GetServiceInfo() map[string]grpc.ServiceInfo {
	return map[string]grpc.ServiceInfo{"talk.v1.Talk": {}}
}

// A talkStream is the server's side of a call.
type talkStream struct {
	method  protoreflect.MethodDescriptor
	receive func() (*dynamicpb.Message, error)
	send    func(*dynamicpb.Message) error
	fail    func(code int64, text string) error
}

// handle runs the method of a call.
func (t *talkService) handle(s *talkStream) error {
	t.ran.Add(1)
	fields := s.method.Output().Fields()
	text, number := fields.ByName("text"), fields.ByName("number")
	note := func(words string, n int64) *dynamicpb.Message {
		m := dynamicpb.NewMessage(s.method.Output())
		m.Set(text, protoreflect.ValueOfString(words))
		m.Set(number, protoreflect.ValueOfInt64(n))
		return m
	}
	sum := int64(0)
	for {
		in, err := s.receive()
		if errors.Is(err, io.EOF) {
			if s.method.Name() == "Sum" {
				return s.send(note("sum", sum))
			}
			return nil
		}
		if err != nil {
			return err
		}
		n := in.Get(number).Int()
		switch sum += n; s.method.Name() {
		case "Echo":
			return s.send(in)
		case "Fail":
			return s.fail(n, in.Get(text).String())
		case "Count":
			for i := range n {
				if err := s.send(note("tick", i+1)); err != nil {
					return err
				}
			}
			return nil
		case "Chat":
			if err := s.send(note(strings.ToUpper(in.Get(text).String()), n)); err != nil {
				return err
			}
		}
	}
}

// connectHandler serves with connect-go.
func (t *talkService) connectHandler(reflect bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/handlers", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, t.ran.Load()) })
	mux.HandleFunc("/authorization", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, t.authorization.Load()) })
	d, err := t.files.FindDescriptorByName("talk.v1.Talk")
	if err != nil {
		panic(err) // it was registered
	}
	methods := d.(protoreflect.ServiceDescriptor).Methods()
	for i := range methods.Len() {
		m := methods.Get(i)
		name := "/talk.v1.Talk/" + string(m.Name())
		initialize := connect.WithRequestInitializer(func(_ connect.Spec, msg any) error {
			if d, ok := msg.(*dynamicpb.Message); ok {
				*d = *dynamicpb.NewMessage(m.Input())
			}
			return nil
		})
		handle := func(h http.Header, receive func() (*dynamicpb.Message, error), send func(*dynamicpb.Message) error) error {
			t.authorization.Store(h.Get("Authorization"))
			return t.handle(&talkStream{method: m, receive: receive, send: send, fail: failConnect})
		}
		switch {
		case m.IsStreamingClient() && m.IsStreamingServer():
			mux.Handle(name, connect.NewBidiStreamHandler(name, func(_ context.Context, s *connect.BidiStream[dynamicpb.Message, dynamicpb.Message]) error {
				return handle(s.RequestHeader(), s.Receive, s.Send)
			}, initialize))
		case m.IsStreamingClient():
			mux.Handle(name, connect.NewClientStreamHandler(name, func(_ context.Context, s *connect.ClientStream[dynamicpb.Message]) (*connect.Response[dynamicpb.Message], error) {
				var answer *dynamicpb.Message
				err := handle(s.RequestHeader(), func() (*dynamicpb.Message, error) {
					if !s.Receive() {
						if s.Err() != nil {
							return nil, s.Err()
						}
						return nil, io.EOF
					}
					return s.Msg(), nil
				}, func(m *dynamicpb.Message) error { answer = m; return nil })
				return connect.NewResponse(answer), err
			}, initialize))
		case m.IsStreamingServer():
			mux.Handle(name, connect.NewServerStreamHandler(name, func(_ context.Context, r *connect.Request[dynamicpb.Message], s *connect.ServerStream[dynamicpb.Message]) error {
				return handle(r.Header(), func() (*dynamicpb.Message, error) { return r.Msg, nil }, s.Send)
			}, initialize))
		default:
			mux.Handle(name, connect.NewUnaryHandler(name, func(_ context.Context, r *connect.Request[dynamicpb.Message]) (*connect.Response[dynamicpb.Message], error) {
				var answer *dynamicpb.Message
				if err := handle(r.Header(), func() (*dynamicpb.Message, error) { return r.Msg, nil }, func(m *dynamicpb.Message) error { answer = m; return nil }); err != nil {
					return nil, err
				}
				return connect.NewResponse(answer), nil
			}, initialize))
		}
	}
	if reflect {
		r := grpcreflect.NewReflector(grpcreflect.NamerFunc(func() []string { return []string{"talk.v1.Talk"} }), grpcreflect.WithDescriptorResolver(t.files), grpcreflect.WithExtensionResolver(&protoregistry.Types{}))
		mux.Handle(grpcreflect.NewHandlerV1(r))
		mux.Handle(grpcreflect.NewHandlerV1Alpha(r))
	}
	return mux
}

// failConnect is the error of Fail, with a detail.
func failConnect(code int64, text string) error {
	err := connect.NewError(connect.Code(max(code, 1)), errors.New(text))
	if d, derr := connect.NewErrorDetail(&errdetails.ErrorInfo{Reason: "ASKED_FOR", Domain: "talk.example"}); derr == nil {
		err.AddDetail(d)
	}
	return err
}

// grpcServer serves with grpc-go.
func (t *talkService) grpcServer() *grpc.Server {
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		name, _ := grpc.MethodFromServerStream(s)
		d, err := t.files.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(name, "/"), "/", ".")))
		m, ok := d.(protoreflect.MethodDescriptor)
		if err != nil || !ok {
			return status.Error(codes.Unimplemented, "no such method")
		}
		if md, ok := metadata.FromIncomingContext(s.Context()); ok {
			t.authorization.Store(strings.Join(md.Get("authorization"), ","))
		}
		asked := 0
		return t.handle(&talkStream{
			method: m,
			receive: func() (*dynamicpb.Message, error) {
				if asked++; asked > 1 && !m.IsStreamingClient() {
					return nil, io.EOF
				}
				in := dynamicpb.NewMessage(m.Input())
				return in, s.RecvMsg(in)
			},
			send: func(m *dynamicpb.Message) error { return s.SendMsg(m) },
			fail: func(code int64, text string) error {
				st, err := status.New(codes.Code(uint32(max(code, 1))), text).WithDetails(&errdetails.ErrorInfo{Reason: "ASKED_FOR", Domain: "talk.example"})
				if err != nil {
					return err
				}
				return st.Err()
			},
		})
	}))
	v1.RegisterServerReflectionServer(server, grpcreflection.NewServerV1(grpcreflection.ServerOptions{Services: t, DescriptorResolver: t.files, ExtensionResolver: &protoregistry.Types{}}))
	return server
}

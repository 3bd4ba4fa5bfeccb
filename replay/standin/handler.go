package standin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"unwire/replay/standin/codec"
	"unwire/replay/standin/response"
	"unwire/replay/standin/strictjson"
	"unwire/replay/standin/walk"
)

// handler returns the HTTP handler for the whole API. It executes methods that the server implements,
// returns responses that the script defines for others, and "unimplemented" for all other methods in
// proto/.
func (s *Server) handler() (http.Handler, error) {
	mux := http.NewServeMux()
	described := map[string]bool{}
	for sd := range s.api.Services() {
		for i := range sd.Methods().Len() {
			md := sd.Methods().Get(i)
			procedure := "/" + string(sd.FullName()) + "/" + string(md.Name())
			described[procedure] = true
			if err := s.handle(mux, procedure, md); err != nil {
				return nil, err
			}
		}
	}

	// The script may answer methods that proto/ does not describe.
	for procedure, answer := range s.script.Answers {
		if described[procedure] || string(answer) == "null" {
			continue
		}
		if err := s.handleUndescribed(mux, procedure, answer); err != nil {
			return nil, err
		}
	}
	mux.HandleFunc("GET /standin/stats", s.serveStats)
	mux.HandleFunc("POST /auth/exchange_user_api_key", s.exchangeKey)
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"partialSuccess":{}}`)
	})
	return mux, nil
}

// handle registers the handler of one method; procedure is its URL path.
func (s *Server) handle(mux *http.ServeMux, procedure string, md protoreflect.MethodDescriptor) error {
	answer := s.script.Answers[procedure]
	fault, err := s.fault(answer)
	if err != nil {
		return fmt.Errorf("standin: script: answers[%q]: %w", procedure, err)
	}
	played := md.IsStreamingServer() || procedure == procedureAppend
	if played && fault == nil && answer != nil {
		return fmt.Errorf("standin: script: answers[%q]: the turns of the script answer this method: only a $error or null is allowed here", procedure)
	}
	o := s.handlerOptions(md)
	sse := ""
	var h http.Handler

	// The kind of the method decides how the script is used.
	switch {
	case md.IsStreamingClient():
		h = connect.NewBidiStreamHandler(procedure, s.bidiPlay(procedure, md, fault), o...)
	case md.IsStreamingServer():
		if procedure == procedureRunSSE && s.script.SSE != "connect" {
			sse = s.script.SSE
		}
		h = connect.NewServerStreamHandler(procedure, s.streamPlay(procedure, md, fault), o...)
	default:
		play, err := s.unaryPlay(procedure, md, answer, fault)
		if err != nil {
			return fmt.Errorf("standin: script: answers[%q]: %w", procedure, err)
		}
		h = connect.NewUnaryHandler(procedure, play, o...)
	}
	mux.Handle(procedure, response.Wrap(h, md.IsStreamingClient(), sse))
	return nil
}

// handlerOptions returns the connect-go options of a method's handler.
func (s *Server) handlerOptions(md protoreflect.MethodDescriptor) []connect.HandlerOption {
	o := []connect.HandlerOption{
		connect.WithSchema(md),
		connect.WithRequestInitializer(initialize),
		connect.WithCodec(codec.Binary{}),
		connect.WithCodec(codec.JSON{Form: "json"}),
		connect.WithCodec(codec.JSON{Form: "json; charset=utf-8"}),
		connect.WithReadMaxBytes(maxMessageBytes),
		connect.WithInterceptors(gate{s}),
	}
	return append(o, s.script.Compression.Options()...)
}

// initialize sets the type of a request message, which connect-go creates empty.
func initialize(spec connect.Spec, v any) error {
	m, ok := v.(*message)
	md, described := spec.Schema.(protoreflect.MethodDescriptor)
	if ok && described {
		*m = *dynamicpb.NewMessage(md.Input())
	}
	return nil
}

// bidiPlay returns the implementation of a bidirectional method; fault, if not nil, is the error that
// it returns.
func (s *Server) bidiPlay(procedure string, md protoreflect.MethodDescriptor, fault *scriptFault) bidiPlay {
	switch {
	case fault != nil:
		return func(context.Context, *bidiStream) error { return fault.err() }
	case procedure == procedureRun:
		return func(ctx context.Context, stream *bidiStream) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return s.runTurn(ctx, procedure, stream.RequestHeader(), s.fill(ctx, stream.Receive), stream.Send)
		}
	case chatFields(md) != nil:
		return func(ctx context.Context, stream *bidiStream) error {
			request, err := stream.Receive()
			if err != nil {
				return err
			}
			return s.runChat(ctx, md, request, stream.Send)
		}
	}
	return func(context.Context, *bidiStream) error { return unimplemented(procedure) }
}

// streamPlay returns the implementation of a method that streams responses; fault, if not nil, is the
// error that it returns.
func (s *Server) streamPlay(procedure string, md protoreflect.MethodDescriptor, fault *scriptFault) streamPlay {
	switch {
	case fault != nil:
		return func(context.Context, *connect.Request[message], *serverStream) error { return fault.err() }
	case procedure == procedureRunSSE:
		return s.runSSE
	case procedure == procedureRunPoll:
		return s.runPoll
	case procedure == procedureStreamSSE:
		return s.streamSSE
	case chatFields(md) != nil:
		return func(ctx context.Context, req *connect.Request[message], stream *serverStream) error {
			return s.runChat(ctx, md, req.Msg, stream.Send)
		}
	}
	return func(context.Context, *connect.Request[message], *serverStream) error { return unimplemented(procedure) }
}

// unaryPlay returns the implementation of a unary method, which returns the scripted response answer,
// or the error fault if that is not nil.
func (s *Server) unaryPlay(procedure string, md protoreflect.MethodDescriptor, answer json.RawMessage, fault *scriptFault) (unaryPlay, error) {
	if fault != nil {
		return func(context.Context, *connect.Request[message]) (*connect.Response[message], error) {
			return nil, fault.err()
		}, nil
	}
	if procedure == procedureAppend {
		return s.bidiAppend, nil
	}
	if answer == nil {
		return func(context.Context, *connect.Request[message]) (*connect.Response[message], error) {
			return nil, unimplemented(procedure)
		}, nil
	}
	m := dynamicpb.NewMessage(md.Output())
	if err := readMessage(answer, m); err != nil {
		return nil, err
	}
	return func(context.Context, *connect.Request[message]) (*connect.Response[message], error) {
		out := proto.Clone(m).(*message)
		// The only thing an answer can need that the script does not know.
		err := walk.Strings(out, func(text string) (string, error) { return strings.ReplaceAll(text, "${url}", s.URL()), nil })
		return connect.NewResponse(out), err
	}, nil
}

// handleUndescribed registers the scripted response for a method that proto/ does not define.
func (s *Server) handleUndescribed(mux *http.ServeMux, procedure string, answer json.RawMessage) error {
	place := fmt.Sprintf("standin: script: answers[%q]", procedure)
	if strings.Count(procedure, "/") != 2 || !strings.HasPrefix(procedure, "/") || strings.ContainsAny(procedure, " {}") {
		return fmt.Errorf("%s: not of the form /package.Service/Method", place)
	}
	fault, err := s.fault(answer)
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	var empty map[string]any
	if fault == nil && (json.Unmarshal(answer, &empty) != nil || len(empty) > 0) {
		return fmt.Errorf("%s: proto/ does not describe the method: its answer can only be {}", place)
	}
	play := func(context.Context, *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
		if fault != nil {
			return nil, fault.err()
		}
		return connect.NewResponse(&emptypb.Empty{}), nil
	}
	o := append([]connect.HandlerOption{connect.WithInterceptors(gate{s}), connect.WithReadMaxBytes(maxMessageBytes)}, s.script.Compression.Options()...)
	mux.Handle(procedure, response.Wrap(connect.NewUnaryHandler(procedure, play, o...), false, ""))
	return nil
}

// isFault reports whether a scripted response is an error: {"$error": …}.
func isFault(answer json.RawMessage) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(answer, &members) == nil && members["$error"] != nil
}

// fault parses a scripted response that is an error; nil if it is not one.
func (s *Server) fault(answer json.RawMessage) (*scriptFault, error) {
	if string(answer) == "null" {
		return &scriptFault{code: connect.CodeUnimplemented, Message: "not implemented"}, nil
	}
	if !isFault(answer) {
		return nil, nil
	}
	var f struct {
		Fault scriptFault `json:"$error"`
	}
	if err := strictjson.Read(answer, &f); err != nil {
		return nil, err
	}
	if err := f.Fault.bind(s.api); err != nil {
		return nil, fmt.Errorf("$error.%w", err)
	}
	return &f.Fault, nil
}

// unimplemented returns the error for a method without an implementation.
func unimplemented(procedure string) error {
	name := strings.ReplaceAll(strings.TrimPrefix(procedure, "/"), "/", ".")
	return connect.NewError(connect.CodeUnimplemented, errors.New(name+" is not implemented"))
}

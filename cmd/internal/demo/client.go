package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	definitions "unwire/proto"
	"unwire/schema"
)

// ClientOptions select the server with which the demo's client talks, and how. HTTPS_PROXY, SSL_CERT_FILE
// and SSLKEYLOGFILE are read from the environment, as by any recorded client.
type ClientOptions struct {
	// URL is the base URL of the server.
	URL string
	// Token is the bearer token. The client's other identifiers are derived from it.
	Token string

	// CAFile is a PEM file with a CA certificate to trust in addition to the system's; "" for none.
	CAFile string

	// Heartbeat is the time between two of the client's heartbeat messages; 0 means 5 s.
	Heartbeat time.Duration
	// Prompt is the user's question in the conversation; "" means the one of the scenario.
	Prompt string
	// Fallback makes the client use HTTP/1.1 and split its stream over several calls. Its value,
	// FallbackHex or FallbackBinary, selects the encoding of messages; "" means HTTP/2 and a single
	// stream.
	Fallback string
	// Out receives one line for each step of the client; nil discards them.
	Out io.Writer
}

// The encodings of a client message in the fallback: hexadecimal text, or bytes.
const (
	FallbackHex    = "hex"
	FallbackBinary = "binary"
)

// A client is one run of the demo's scenario against a server.
type client struct {
	// o are the options.
	o ClientOptions

	// http is the HTTP client with its proxy.
	http *http.Client

	// schema has the definitions from which messages are built.
	schema *schema.Schema

	// sc is the scenario to play.
	sc *scenario

	// id generates the client's identifiers.
	id *identity

	// session is the value of the header x-session-id.
	session string
}

// RunClient runs the demo's scenario with a connect-go client. The error at the end of the older
// endpoint's stream belongs to the scenario and is printed.
//
// Errors: anything else that prevents the scenario from completing.
func RunClient(ctx context.Context, o ClientOptions) error {
	c, err := newClient(o)
	if err != nil {
		return err
	}
	defer c.http.CloseIdleConnections()
	if err := c.models(ctx); err != nil {
		return fmt.Errorf("demo: the call for the list of models failed: %w", err)
	}
	if err := c.turn(ctx); err != nil {
		return fmt.Errorf("demo: the conversation failed: %w", err)
	}
	if err := c.chat(ctx); err != nil {
		return fmt.Errorf("demo: the chat call failed: %w", err)
	}
	return nil
}

// newClient returns a client for one run of the scenario, and sets the defaults of its options.
func newClient(o ClientOptions) (*client, error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 5 * time.Second
	}
	o.URL = strings.TrimSuffix(o.URL, "/")
	sc, err := loadScenario()
	if err != nil {
		return nil, err
	}
	if o.Prompt != "" {
		sc.Prompt = o.Prompt
	}
	s, err := schema.Load(context.Background(), definitions.Files)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	hc, err := newHTTPClient(o)
	if err != nil {
		return nil, err
	}
	id := &identity{token: o.Token}
	return &client{o: o, http: hc, schema: s, sc: sc, id: id, session: id.uuid()}, nil
}

// say prints one line about a step of the scenario.
func (c *client) say(format string, args ...any) { fmt.Fprintf(c.o.Out, format+"\n", args...) }

// headers sets the headers that every request of the client has.
func (c *client) headers(h http.Header) {
	c.id.headers(h, c.sc, c.session, time.Now().UnixMilli())
}

// models calls the unary method that lists the available models, with JSON messages, and prints them.
func (c *client) models(ctx context.Context) error {
	rpc, md, err := c.method(agentService, "GetUsableModels", connect.WithProtoJSON())
	if err != nil {
		return err
	}
	req := connect.NewRequest(dynamicpb.NewMessage(md.Input()))
	c.headers(req.Header())
	resp, err := rpc.CallUnary(ctx, req)
	if err != nil {
		return err
	}
	var names []string
	if v, ok := find(resp.Msg, "models"); ok {
		for i := range v.List().Len() {
			id, _ := find(v.List().Get(i).Message(), "model_id")
			names = append(names, id.String())
		}
	}
	c.say("models  %s", strings.Join(names, ", "))
	return nil
}

// chat calls the older chat endpoint, whose response stream ends with an error, and prints answer and
// error.
func (c *client) chat(ctx context.Context) error {
	rpc, md, err := c.method("aiserver.v1.ChatService", "StreamUnifiedChat")
	if err != nil {
		return err
	}
	msg, err := build(md.Input(), object{
		"conversation": []object{
			{"text": c.sc.ChatBefore, "type": 1, "bubbleId": c.id.uuid()},
			{"text": c.sc.ChatReply, "type": 2, "bubbleId": c.id.uuid()},
			{"text": c.sc.ChatPrompt, "type": 1, "bubbleId": c.id.uuid()},
		},
		"modelDetails":   object{"modelName": "composer-1"},
		"isChat":         true,
		"conversationId": c.id.uuid(),
	})
	if err != nil {
		return err
	}
	req := connect.NewRequest(msg)
	c.headers(req.Header())
	stream, err := rpc.CallServerStream(ctx, req)
	if err != nil {
		return err
	}
	defer stream.Close()

	// The text arrives in deltas; the stream then ends with an error, which is part of the
	// scenario.
	var said strings.Builder
	for stream.Receive() {
		if v, ok := find(stream.Msg(), "text"); ok {
			said.WriteString(v.String())
		}
	}
	c.say("chat    prompt: %s", c.sc.ChatPrompt)
	if said.Len() > 0 {
		c.say("chat    answer: %s…", strings.TrimSpace(said.String()))
	}
	refusal := new(connect.Error)
	switch err := stream.Err(); {
	case errors.As(err, &refusal):
		c.say("chat    ended with %s: %s%s", refusal.Code(), refusal.Message(), c.details(refusal))
	case err != nil:
		return err
	default:
		c.say("chat    ended")
	}
	return nil
}

// details formats the detail messages of an error. Details of types without a definition are given by
// type and size.
func (c *client) details(e *connect.Error) string {
	var b strings.Builder
	for _, d := range e.Details() {
		md := c.schema.Message(d.Type())
		if md == nil {
			fmt.Fprintf(&b, " (%s, %d bytes)", d.Type(), len(d.Bytes()))
			continue
		}
		m := dynamicpb.NewMessage(md)
		if err := (stableCodec{}).Unmarshal(d.Bytes(), m); err != nil {
			fmt.Fprintf(&b, " (%s: %v)", d.Type(), err)
			continue
		}
		fmt.Fprintf(&b, " (%s", enumName(m, "error"))
		for _, path := range []string{"details.title", "details.detail"} {
			if v, ok := find(m, path); ok && v.String() != "" {
				b.WriteString("; " + v.String())
			}
		}
		b.WriteString(")")
	}
	return b.String()
}

// enumName returns the name of an enum field's value or, if it has no name, its number.
func enumName(m protoreflect.Message, field protoreflect.Name) string {
	fd := m.Descriptor().Fields().ByName(field)
	if fd == nil || fd.Enum() == nil {
		return "?"
	}
	n := m.Get(fd).Enum()
	if v := fd.Enum().Values().ByNumber(n); v != nil {
		return string(v.Name())
	}
	return fmt.Sprint(n)
}

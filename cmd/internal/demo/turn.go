package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// agentService is the full name of the service with the bidirectional stream.
const agentService = "agent.v1.AgentService"

// A turn is one question on the bidirectional stream, and what the client does until the answer is
// complete: heartbeats, and answers to the server's tool calls.
type turn struct {
	// c is the client.
	c *client

	// stream is the open stream.
	stream duplex

	// input is the type of the client's messages.
	input protoreflect.MessageDescriptor

	// sendMu serializes sending, since heartbeats are sent from their own goroutine.
	sendMu sync.Mutex

	// blobs are the binary values that the server asked the client to store, by key.
	blobs map[string][]byte

	// thinking collects the streamed text of the thinking.
	thinking strings.Builder

	// answer collects the streamed text of the answer.
	answer strings.Builder

	// frames counts the received messages.
	frames int

	// ended is true once the server has ended the turn.
	ended bool
}

// turn sends a question, answers the server's requests, and reads the answer to its end.
func (c *client) turn(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Requests with a context are large enough to be worth compressing; the small
	// answers go as they are.
	rpc, md, err := c.method(agentService, "Run", connect.WithSendGzip(), connect.WithCompressMinBytes(512))
	if err != nil {
		return err
	}
	t := &turn{c: c, input: md.Input(), blobs: map[string][]byte{}}
	if c.o.Fallback == "" {
		stream := rpc.CallBidiStream(ctx)
		c.headers(stream.RequestHeader())
		t.stream = stream
	} else if t.stream, err = c.openSplit(ctx, agentService, "Run"); err != nil {
		return err
	}
	defer t.stream.CloseResponse()
	if err := t.ask(); err != nil {
		return err
	}
	beating, stop := context.WithCancel(ctx)
	defer stop()
	beats := t.heartbeats(beating)
	if err = t.listen(); err != nil {
		cancel() // else what is being sent may end as it would
	}
	stop()
	<-beats
	return err
}

// ask sends the message with the question.
func (t *turn) ask() error {
	c := t.c
	c.say("agent   prompt: %s", c.sc.Prompt)
	return t.send(object{"runRequest": object{
		"conversationState": object{},
		"action": object{"userMessageAction": object{
			"userMessage":    object{"text": c.sc.Prompt, "messageId": c.id.uuid(), "selectedContext": object{}},
			"requestContext": c.sc.RequestContext,
		}},
		"modelDetails":   c.sc.Model,
		"mcpTools":       object{},
		"conversationId": c.id.uuid(),
	}})
}

// heartbeats sends one heartbeat at once, because the stream may be idle from the start, and then one
// in each interval until ctx ends. done is closed after the last.
func (t *turn) heartbeats(ctx context.Context) (done chan struct{}) {
	done = make(chan struct{})
	if err := t.send(object{"clientHeartbeat": object{}}); err != nil {
		close(done) // the stream is broken: listen will say how
		return done
	}
	go func() {
		defer close(done)
		tick := time.NewTicker(t.c.o.Heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if t.send(object{"clientHeartbeat": object{}}) != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return done
}

// listen handles the server's messages until the stream ends. It is an error if the stream ends before
// the turn does.
func (t *turn) listen() error {
	for {
		m, err := t.stream.Receive()
		if errors.Is(err, io.EOF) {
			if !t.ended {
				return errors.New("the stream ended before the answer did")
			}
			t.c.say("agent   the answer ended after %d frames", t.frames)
			return nil
		}
		if err != nil {
			return fmt.Errorf("the stream failed after %d frames: %w", t.frames, err)
		}
		t.frames++
		if err := t.take(m); err != nil {
			return err
		}
	}
}

// take handles one message from the server.
func (t *turn) take(m *message) error {
	// Each message of the server has one case; unknown ones are ignored, as the CLI does.
	if v, ok := find(m, "interaction_update.thinking_delta.text"); ok {
		t.thinking.WriteString(v.String())
		return nil
	}
	if _, ok := find(m, "interaction_update.thinking_completed"); ok {
		t.c.say("agent   thinking: %s", t.thinking.String())
		t.thinking.Reset()
		return nil
	}
	if v, ok := find(m, "interaction_update.text_delta.text"); ok {
		t.answer.WriteString(v.String())
		return nil
	}
	if _, ok := find(m, "interaction_update.turn_ended"); ok {
		t.ended = true
		t.c.say("agent   answer: %s", t.answer.String())
		t.sendMu.Lock()
		defer t.sendMu.Unlock()
		return t.stream.CloseRequest()
	}
	if _, ok := find(m, "exec_server_message"); ok {
		return t.execute(m)
	}
	if _, ok := find(m, "kv_server_message"); ok {
		return t.blob(m)
	}
	return nil
}

// execute answers a tool call of the server: it sends the file that the server wants to read, or an error
// for other tools.
func (t *turn) execute(m *message) error {
	id, _ := find(m, "exec_server_message.id")
	execID, _ := find(m, "exec_server_message.exec_id")
	reply := object{"id": id.Uint(), "execId": execID.String()}
	if path, ok := find(m, "exec_server_message.read_args.path"); ok {
		reply["readResult"] = t.read(path.String())
	} else {
		t.c.say("agent   tool call %d: not supported by this client", id.Uint())
		return t.send(object{"execClientControlMessage": object{"throw": object{"id": id.Uint(), "error": "the demo's client only reads files"}}})
	}
	if err := t.send(object{"execClientMessage": reply}); err != nil {
		return err
	}
	return t.send(object{"execClientControlMessage": object{"streamClose": object{"id": id.Uint()}}})
}

// read returns the result of reading a file of the scenario's workspace, in JSON form.
func (t *turn) read(path string) object {
	data, err := t.c.sc.workspaceFile(path)
	if err != nil {
		t.c.say("agent   tool call: read %s: there is no such file", path)
		return object{"fileNotFound": object{"path": path}}
	}
	lines := strings.Count(string(data), "\n")
	t.c.say("agent   tool call: read %s: %d lines", path, lines)
	return object{"success": object{"path": path, "content": string(data), "totalLines": lines, "fileSize": len(data)}}
}

// blob answers a request of the server to store a binary value, or to return a stored one.
func (t *turn) blob(m *message) error {
	id, _ := find(m, "kv_server_message.id")
	reply := object{"id": id.Uint()}
	if key, ok := find(m, "kv_server_message.set_blob_args.blob_id"); ok {
		data, _ := find(m, "kv_server_message.set_blob_args.blob_data")
		t.blobs[string(key.Bytes())] = data.Bytes()
		t.c.say("agent   stored %d bytes for the server under the key %x…", len(data.Bytes()), key.Bytes()[:min(4, len(key.Bytes()))])
		reply["setBlobResult"] = object{}
	} else {
		key, _ := find(m, "kv_server_message.get_blob_args.blob_id")
		data, known := t.blobs[string(key.Bytes())]
		t.c.say("agent   returned %d stored bytes to the server", len(data))
		result := object{}
		if known {
			result["blobData"] = data
		}
		reply["getBlobResult"] = result
	}
	return t.send(object{"kvClientMessage": reply})
}

// send builds a message from its JSON form, and sends it. If the server has already ended the stream, it
// does nothing.
func (t *turn) send(form object) error {
	m, err := build(t.input, form)
	if err != nil {
		return err
	}
	t.sendMu.Lock()
	defer t.sendMu.Unlock()
	err = t.stream.Send(m)
	if errors.Is(err, io.EOF) {
		return nil // the server has ended the stream: Receive says why
	}
	return err
}

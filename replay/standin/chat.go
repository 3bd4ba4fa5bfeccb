package standin

import (
	"context"
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// chatFields returns the path of field names that leads, in the response of a streaming method, to the
// message with the chat's text. It is empty if that is the response itself, and nil if the method is
// not a chat whose request is sent on the same stream.
func chatFields(md protoreflect.MethodDescriptor) []protoreflect.Name {
	const name = "aiserver.v1.StreamUnifiedChatResponse"
	if !md.IsStreamingServer() || md.Input().Name() == "BidiRequestId" {
		return nil
	}
	if md.Output().FullName() == name {
		return []protoreflect.Name{}
	}
	fields := md.Output().Fields()
	for i := range fields.Len() {
		if fd := fields.Get(i); fd.Message() != nil && fd.Message().FullName() == name && !fd.IsList() {
			return []protoreflect.Name{fd.Name()}
		}
	}
	return nil
}

// A chat plays a script's chat in one call of an older endpoint.
type chat struct {
	// ctx is the context of the call.
	ctx context.Context

	// output is the response type of the method.
	output protoreflect.MessageDescriptor
	// path leads from the response to the message with the text.
	path []protoreflect.Name

	// emit sends a response.
	emit func(*dynamicpb.Message) error

	// vars are the values of the script's placeholders.
	vars variables
}

// runChat plays the script's chat for a request to one of ChatService's streaming methods. emit sends a
// response.
func (s *Server) runChat(ctx context.Context, md protoreflect.MethodDescriptor, request protoreflect.Message, emit func(*dynamicpb.Message) error) error {
	c := &chat{ctx: ctx, output: md.Output(), path: chatFields(md), emit: emit, vars: variables{text: map[string]string{}}}
	place := c.read(request)
	chosen := choose(s.script.Chats, c.vars.text["prompt"], place, false)
	if chosen == nil {
		return connect.NewError(connect.CodeNotFound, errors.New("the script of the stand-in server has no chat answer to this prompt"))
	}
	for i := range chosen.Steps {
		if err := sleep(ctx, chosen.Steps[i].DelayMS); err != nil {
			return err
		}
		if err := c.step(&chosen.Steps[i]); err != nil {
			return err
		}
	}
	return nil
}

// read sets the placeholders from a request. place is the number of earlier turns that the request
// contains; it selects the chat of the script.
func (c *chat) read(m protoreflect.Message) (place int) {
	if fd := m.Descriptor().Fields().ByName("stream_unified_chat_request"); fd != nil {
		m = m.Get(fd).Message()
	}
	fields := m.Descriptor().Fields()
	if fd := fields.ByName("conversation"); fd != nil && fd.IsList() {
		list := m.Get(fd).List()
		if n := list.Len(); n > 0 {
			c.vars.text["prompt"] = stringField(list.Get(n-1).Message(), "text")
			place = (n - 1) / 2
		}
	}
	if fd := fields.ByName("model_details"); fd != nil {
		c.vars.text["model"] = stringField(m.Get(fd).Message(), "model_name")
	}
	c.vars.text["conversation_id"] = stringField(m, "conversation_id")
	return place
}

// step executes one step of the script.
func (c *chat) step(st *scriptStep) error {
	root := dynamicpb.NewMessage(c.output)
	switch {
	case st.Text != nil, st.Thinking != nil:
		return c.deltas(st)
	case st.Wait != nil:
		return sleep(c.ctx, st.Wait.MS)
	case st.Send != nil:
		proto.Merge(within(root, c.path...).Interface(), c.vars.expandMessage(st.message))
		return c.emit(root)
	case st.Raw != nil:
		root.SetUnknown(st.bytes)
		return c.emit(root)
	}
	return endOf(c.ctx, st)
}

// deltas sends the text of a step in pieces.
func (c *chat) deltas(st *scriptStep) error {
	path := c.path
	if st.Thinking != nil {
		path = append(path[:len(path):len(path)], "thinking")
	}
	return paced(c.ctx, c.vars.expand(st.text), st, func(piece string) error {
		root := dynamicpb.NewMessage(c.output)
		set(within(root, path...), "text", piece)
		if st.Text != nil {
			c.vars.text["answer"] += piece
		}
		return c.emit(root)
	})
}

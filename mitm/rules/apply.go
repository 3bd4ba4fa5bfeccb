package rules

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/envelope"
	"unwire/decode/filter"
	"unwire/decode/jsontree"
	"unwire/decode/wire"
	"unwire/mitm/rewrite"
)

// interceptName is the rule name reported for frames that are held because Options.Intercept selects them.
const interceptName = "intercept"

// maxKeptNodes is the number of nodes of a decoded message up to which its memory is reused for the next frame.
const maxKeptNodes = 4096

// A change is the state of one frame while the rules apply to it.
type change struct {
	// exchange is the exchange of the frame.
	exchange *exchange
	// frame is the frame as it was received.
	frame *rewrite.Frame
	// shown is the decoded frame that filters examine.
	shown filter.Frame

	// view points to now.
	view *filter.Exchange
	// now is the exchange as filters examine it, at the time when the frame arrived.
	now filter.Exchange

	// messages are the decompressed messages that would be forwarded in place of the frame, as the rules so far have
	// left them; empty if a rule dropped it.
	messages [][]byte
	// names are the names of the rules that have changed the frame.
	names []string
}

// Passes reports whether Frame would forward a frame unchanged at once.
func (x *exchange) Passes(f *rewrite.Frame) bool {
	return x.selected(f).none()
}

// PassesMessage reports whether the index of fields already shows that Passes is true for an envelope with flags, or
// for a whole body.
func (x *exchange) PassesMessage(d captures.Direction, flags envelope.Flags, message []byte) bool {
	index, codec := x.completeIndex(d)
	return index != nil && index.excludes(codec, endsStream(flags), message)
}

// PassesEnvelopes examines the complete envelopes at the beginning of p. It returns the number, and the total length in
// bytes, of those for which the index of fields already shows that Passes is true.
func (x *exchange) PassesEnvelopes(d captures.Direction, p []byte) (passed, frames int) {
	index, codec := x.completeIndex(d)
	if index == nil {
		return 0, 0
	}
	for len(p)-passed >= envelope.PrefixLen {
		prefix, start := envelope.ParsePrefix(p[passed:]), passed+envelope.PrefixLen
		if prefix.Flags&envelope.Compressed != 0 || prefix.Length > rewrite.MaxWatched-envelope.PrefixLen {
			break
		}
		end := start + int(prefix.Length)
		if end > len(p) || !index.excludes(codec, endsStream(prefix.Flags), p[start:end]) {
			break
		}
		passed, frames = end, frames+1
	}
	return passed, frames
}

// completeIndex returns the index for messages of a direction, and their codec, if the index covers everything that may
// happen to a frame, and examines nothing but fields. Otherwise it returns nil.
func (x *exchange) completeIndex(d captures.Direction) (i *index, codec string) {
	if x.partial[d] || x.others != nil {
		return nil, ""
	}
	codec = x.callNow().Codec
	if i = x.indexFor(d, codec); i == nil || i.text != nil {
		return nil, ""
	}
	return i, codec
}

// excludes reports whether the index already shows that no rule that it covers matches a frame. false means that the
// filters must be evaluated.
func (x *exchange) excludes(f *rewrite.Frame) bool {
	codec := x.callNow().Codec
	index := x.indexFor(f.Dir, codec)
	return index != nil && index.excludes(codec, isEnd(f), f.Data) &&
		(index.text == nil || isEnd(f) || !index.text.In(x.decode(f, codec)))
}

// A memory holds the state of one frame, which is reused for the next frame of the direction.
type memory struct {
	// change is the state while the rules apply.
	change change
	// frame is the decoded frame.
	frame decode.Frame
	// tree has the fields of the frame's message.
	tree wire.Tree

	// call is the call for which messageType was determined; nil before.
	call *decode.Call
	// messageType is the definition of the messages of the direction; nil if it is not known.
	messageType protoreflect.MessageDescriptor
}

// memoryOf returns the memory for the current frame of a direction.
func (x *exchange) memoryOf(d captures.Direction) *memory {
	if x.memories[d] == nil {
		x.memories[d] = new(memory)
	}
	return x.memories[d]
}

// A selection lists the rules, and other interventions, that apply to a frame.
type selection struct {
	// rules are the rules of the file that match the frame, in the order of the file.
	rules []*rule
	// intercepted means that Options.Intercept selects the frame, so that it is held until a user decides about it.
	intercepted bool
	// hooked means that Options.Hook decides about the frame.
	hooked bool
}

// none reports whether nothing applies.
func (s selection) none() bool { return len(s.rules) == 0 && !s.intercepted && !s.hooked }

// selected evaluates the filters for a frame and returns what applies to it. The decoded frame is kept in
// x.memories until the next frame of the direction.
func (x *exchange) selected(f *rewrite.Frame) selection {
	excluded := x.excludes(f)
	if excluded && !x.partial[f.Dir] && !x.mayIntercept(f.Dir) && !x.mayHook(f.Dir) {
		return selection{}
	}
	c := &x.memoryOf(f.Dir).change
	*c = change{exchange: x, frame: f, now: x.viewNow()}
	c.view = &c.now
	c.shown = filter.Frame{Frame: x.decode(f, c.view.Codec), Type: x.messageType(f.Dir)}
	return selection{
		rules:       c.matching(excluded),
		intercepted: x.mayIntercept(f.Dir) && x.others.intercept[f.Dir].holds(c.view, c.shown),
		hooked:      x.mayHook(f.Dir) && x.others.hook[f.Dir].holds(c.view, c.shown),
	}
}

// Frame applies the rules to a frame.
func (x *exchange) Frame(ctx context.Context, f *rewrite.Frame) rewrite.Verdict {
	on := x.selected(f)
	if on.none() {
		return rewrite.Verdict{}
	}

	// What matches is decided by the frame as it arrived. Each rule changes what the one before it has left.
	c := &x.memoryOf(f.Dir).change
	c.messages = [][]byte{f.Data}
	for _, r := range on.rules {
		if len(c.messages) == 0 {
			break
		}
		if !x.policy.take(r) {
			continue
		}
		if v, over := c.apply(ctx, r); over {
			return v
		}
	}
	if len(c.messages) > 0 && on.intercepted {
		c.hold(ctx, interceptName)
	}
	if on.hooked {
		if v, over := c.hook(ctx); over {
			return v
		}
	}
	if len(c.names) == 0 {
		return rewrite.Verdict{}
	}
	return rewrite.Verdict{Action: rewrite.Replace, Rule: strings.Join(c.names, ", "), Messages: c.messages}
}

// matching returns the rules that match the frame. excluded means that none does that the index covers.
func (c *change) matching(excluded bool) (rules []*rule) {
	end, fields := isEnd(c.frame), fieldsOf(c.shown.Tree)
	for _, r := range c.exchange.rules[c.frame.Dir] {
		if n := r.when.need.Number; excluded && r.indexed || n > 0 && fields&elementOf(n) == 0 {
			continue
		}
		if (!end || r.rule.matchesEnd) && r.when.holds(c.view, c.shown) {
			rules = append(rules, r.rule)
		}
	}
	return rules
}

// decode decodes the message of a frame, in a codec, for the filters.
func (x *exchange) decode(f *rewrite.Frame, codec string) *decode.Frame {
	m := x.memoryOf(f.Dir)
	out := &m.frame
	*out = decode.Frame{Dir: f.Dir, Seq: f.Number, Opcode: f.Opcode, Frame: envelope.Frame{
		Len: len(f.Received), Flags: f.Flags, Framed: f.Framed, Raw: f.Raw, Data: f.Data,
	}}
	if f.Flags&envelope.Compressed != 0 {
		out.Encoding = "compressed"
	}
	if isEnd(f) || isJSON(f, codec, f.Data) {
		return out
	}
	t := &m.tree
	if cap(t.Nodes) > maxKeptNodes {
		*t = wire.Tree{}
	}
	if t.Reset(f.Data, wire.Options{}); t.Err() == nil || codec == "proto" {
		out.Tree = t
	}
	return out
}

// isEnd reports whether a frame ends a stream: an end-of-stream or trailer envelope, or a WebSocket control frame.
func isEnd(f *rewrite.Frame) bool {
	return f.Framed && endsStream(f.Flags) || f.Opcode.Kind() >= captures.OpClose
}

// endsStream reports whether flags are those of an end-of-stream or trailer envelope.
func endsStream(flags envelope.Flags) bool { return flags&(envelope.EndStream|envelope.Trailer) != 0 }

// isJSON reports whether a message in place of the frame is JSON.
func (c *change) isJSON(data []byte) bool { return isJSON(c.frame, c.view.Codec, data) }

// isJSON reports whether data, the message in a codec of a frame or in its place, is JSON.
func isJSON(f *rewrite.Frame, codec string, data []byte) bool {
	switch {
	case isEnd(f) || codec == "json":
		return true
	case codec == "proto" || len(data) == 0:
		return false
	}
	_, err := jsontree.Parse(data)
	return err == nil
}

// messageType returns the definition of the messages of a direction, or nil if it is not known or the rules do not
// need it.
func (x *exchange) messageType(d captures.Direction) protoreflect.MessageDescriptor {
	if !x.typed {
		return nil
	}
	m, call := x.memoryOf(d), x.callNow()
	if m.call != call {
		m.call, m.messageType = call, nil
		if call.RPC != "" {
			m.messageType = x.policy.o.Type("/"+call.Service+"/"+call.RPC, d)
		}
	}
	return m.messageType
}

// apply carries out the actions of a rule that matches the frame. over means that v is final, because the rule ends
// the exchange.
func (c *change) apply(ctx context.Context, r *rule) (v rewrite.Verdict, over bool) {
	if len(r.edits) > 0 {
		c.edit(r)
	}
	if r.replace != nil {
		c.messages, c.names = [][]byte{r.replace.data}, append(c.names, r.Name)
	}
	if r.delay > 0 {
		wait(ctx, r.delay)
	}
	if r.hold {
		c.hold(ctx, r.Name)
	}

	// A drop is not a final verdict: the frame is replaced by no messages.
	switch {
	case r.drop:
		c.messages, c.names = nil, append(c.names, r.Name)
		return rewrite.Verdict{}, false
	case r.endsAtHead():
		return c.exchange.end(r), true
	}
	if n := r.duplicate; n > 0 && len(c.messages) > 0 {
		last := c.messages[len(c.messages)-1]
		for range n {
			c.messages = append(c.messages, last)
		}
		c.names = append(c.names, r.Name)
	}
	return rewrite.Verdict{}, false
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// edit carries out the edits of a rule on all messages. If one fails, none of them applies.
func (c *change) edit(r *rule) {
	edited := make([][]byte, 0, len(c.messages))
	for _, data := range c.messages {
		for _, e := range r.edits {
			out, _, err := e.Apply(data, c.isJSON(data), c.shown.Type)
			if err == nil && len(out) > rewrite.MaxFrame*4 {
				err = fmt.Errorf("after the edit, the message would have %d bytes, which is too large", len(out))
			}
			if err != nil {
				c.exchange.policy.report(fmt.Sprintf("the rule %q (line %d) does not fit a frame of %s, which passes unchanged: %v",
					r.Name, r.Line, c.exchange.name(), err))
				return
			}
			data = out
		}
		edited = append(edited, data)
	}
	c.messages, c.names = edited, append(c.names, r.Name)
}

// held describes the frame for the user or program who decides about it. rule is the name of the rule that holds it.
func (c *change) held(rule string) Held {
	h := Held{Exchange: c.view.Exchange, Call: c.view.Call, Frame: c.frame, Rule: rule}
	if len(c.messages) > 0 {
		h.Data = c.messages[0]
	}
	h.JSON = c.isJSON(h.Data)
	return h
}

// hold blocks until a user has decided about the frame, and applies the decision. rule is the name of the rule that
// holds it.
func (c *change) hold(ctx context.Context, rule string) {
	o := c.exchange.policy.o
	if o.Hold == nil {
		return
	}
	ctx, end, held := c.exchange.beginHold(ctx, c.frame.Dir)
	if !held {
		return
	}
	defer end()
	if messages, changed := o.Hold(ctx, c.held(rule)); changed {
		c.messages, c.names = messages, append(c.names, rule)
	}
}

// hook lets Options.Hook decide about the frame. over means that v is final, because the hook ends the exchange.
func (c *change) hook(ctx context.Context) (v rewrite.Verdict, over bool) {
	x, o := c.exchange, c.exchange.policy.o
	if len(c.messages) != 1 {
		return v, false
	}
	v, err := o.Hook(ctx, c.held("hook"))
	switch {
	case err != nil:
		x.policy.report(fmt.Sprintf("the hook failed, and frames pass unchanged: %v", err))
	case v.Action == rewrite.Replace:
		c.messages, c.names = v.Messages, append(c.names, v.Rule)
	case v.Action != rewrite.Pass:
		return v, true
	}
	return v, false
}

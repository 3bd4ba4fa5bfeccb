package standin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"unwire/replay/standin/history"
	"unwire/replay/standin/ids"
	"unwire/replay/standin/ledger"
	"unwire/replay/standin/response"
)

// A turn is the execution of one turn of the script, in one call of a client.
type turn struct {
	// s is the server.
	s *Server

	// ctx is the context of the call.
	ctx context.Context

	// request is the client's AgentRunRequest.
	request protoreflect.Message

	// in has the client's further messages.
	in *inbox

	// emit sends a message to the client and counts it.
	emit func(*dynamicpb.Message) error

	// ids generates the identifiers.
	ids *ids.IDs

	// vars are the values of placeholders.
	vars variables

	// answer is the text of the answer so far.
	answer strings.Builder
	// thinking means that thinking was sent, but not yet a thinking_completed.
	thinking bool

	// execID is the number of the last tool request.
	execID uint32

	// kvID is the number of the last request about a blob.
	kvID uint32

	// queryID is the number of the last question to the user.
	queryID uint32

	// blobs are the blobs stored by the script, by name.
	blobs map[string][]byte

	// roots are the ids of all blobs that the script stored, in order.
	roots [][]byte

	// stream is the stream's entry in the ledger.
	stream *ledger.Stream

	// openCalls is the number of tool calls without a result.
	openCalls int

	// definitions are the client's tools, as McpToolDefinition messages.
	definitions []protoreflect.Message

	// done are tool calls whose results came with the request; the script's first calls use them.
	done []history.Call
}

// runTurn waits for the client's first message and plays the turn that it requests. procedure is the
// URL path of the method, header the HTTP headers of the call, and emit sends a message to the client.
func (s *Server) runTurn(ctx context.Context, procedure string, header http.Header, in *inbox, emit func(*dynamicpb.Message) error) error {
	// Heartbeats and prewarming may precede the request.
	request, err := in.await(ctx, s.answerTimeout(0), "the connection (run_request)", func(kind protoreflect.Name, _ protoreflect.Message) bool {
		return kind != "client_heartbeat" && kind != "prewarm_request" && kind != ""
	})
	if err != nil {
		return err
	}
	if got := request.Descriptor().Name(); got != "AgentRunRequest" {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("the first message must be a run_request, not %s", got))
	}

	// Deterministic bytes, so that equal requests get equal ids.
	first, err := proto.MarshalOptions{Deterministic: true}.Marshal(request.Interface())
	if err != nil {
		return err
	}
	t := &turn{
		s: s, ctx: ctx, request: request, in: in,
		emit: func(m *dynamicpb.Message) error {
			s.countSent(m)
			return emit(m)
		},
		ids:   ids.New(s.o.Seed, procedure, header.Get("x-request-id"), first),
		blobs: map[string][]byte{},
		vars: variables{results: map[string]protoreflect.Message{}, outputs: map[string]string{}, text: map[string]string{
			"prompt":          get(request, "action", "user_message_action", "user_message", "text").String(),
			"model":           get(request, "model_details", "model_id").String(),
			"conversation_id": get(request, "conversation_id").String(),
			"system":          get(request, "custom_system_prompt").String(),
		}},
	}
	t.ids.Long = s.script.LongIDs
	if s.script.FreshIDs {
		t.ids.Refresh()
	}
	if s.script.ScatterIDs {
		t.execID, t.kvID = t.ids.Number(1<<20), t.ids.Number(1<<20)
	}
	id := t.vars.text["conversation_id"]
	if t.stream = s.ledger.Open(ctx, id, s.script.SecondRun == "refuse"); t.stream == nil {
		return connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("the stream of conversation %q is still open", id))
	}

	// The ledger must learn of interrupted tool calls, also after a panic.
	interrupted := true
	defer func() { t.stream.Close(interrupted && t.openCalls > 0) }()
	err = t.run()
	if errors.Is(err, errHang) {
		s.ledger.Count(func(n *Stats) { n.Hung++ })
		err = t.hang(&scriptHang{})
	}
	interrupted = ctx.Err() != nil && !errors.Is(err, errCancelled) || in.failed(err)
	if errors.Is(err, errCancelled) {
		root, _ := s.api.message("interaction_update", "turn_ended")
		return t.emit(root)
	}
	return err
}

// run chooses the turn of the script and executes it.
func (t *turn) run() error {
	// Faults that the script simulates come first: a poisoned or an outdated conversation.
	if t.s.script.Poison && t.stream.Poisoned() {
		return errHang
	}
	if f := t.s.script.Stale; f != nil && get(t.request, "conversation_state", "turns").List().Len() < t.stream.Turns() {
		t.s.ledger.Count(func(n *Stats) { n.Stale++ })
		return f.err()
	}
	if err := t.announced(); err != nil {
		return err
	}
	images, err := t.images()
	if err != nil {
		return err
	}

	// Placeholders may use the pictures, and the transcript decides which turn is played.
	t.vars.text["images"] = history.Images(images)
	place, err := t.coldStart()
	if err != nil {
		return err
	}
	chosen := choose(t.s.script.Turns, t.vars.text["prompt"], place, len(t.definitions) > 0)
	if chosen == nil {
		return connect.NewError(connect.CodeNotFound, errors.New("the script of the stand-in server has no answer to this prompt"))
	}

	// A new stream takes a while on the live service; tests set a short time.
	bootstrap := t.s.script.BootstrapMS
	if chosen.BootstrapMS != nil {
		bootstrap = *chosen.BootstrapMS
	}
	if err := t.in.sleep(t.ctx, bootstrap); err != nil {
		return err
	}

	// Results that the client already has must not be requested again.
	t.done = t.done[:min(len(t.done), chosen.calls())]
	return t.play(chosen.Steps)
}

// calls returns the number of tool calls in the steps of the turn.
func (t *scriptTurn) calls() (n int) {
	for i := range t.Steps {
		if t.Steps[i].Tool != nil {
			n++
		}
		if t.Steps[i].Tools != nil {
			n += len(t.Steps[i].Tools.Calls)
		}
	}
	return n
}

// choose returns the turn of the script for a prompt; nil if there is none. place is the number of
// turns that precede it in the conversation, and tools means that the client announced tools; see the
// type script.
func choose(turns []scriptTurn, prompt string, place int, tools bool) *scriptTurn {
	var plain []*scriptTurn
	for i := range turns {
		if with := turns[i].WithTools; with != nil && *with != tools {
			continue
		}
		if turns[i].When == "" {
			plain = append(plain, &turns[i])
		} else if strings.Contains(prompt, turns[i].When) {
			return &turns[i]
		}
	}
	if len(plain) == 0 {
		return nil
	}
	return plain[min(place, len(plain)-1)]
}

// play executes steps, skipping those whose results came with the request.
func (t *turn) play(steps []scriptStep) error {
	for i := range steps {
		st := &steps[i]
		if len(t.done) > 0 {
			if err := t.skip(st); err != nil {
				return err
			}
			continue
		}
		if err := t.in.sleep(t.ctx, st.DelayMS); err != nil {
			return err
		}
		if t.thinking && st.Thinking == nil && st.Heartbeat == nil {
			if err := t.thought(); err != nil {
				return err
			}
		}
		if err := t.step(st); err != nil {
			return err
		}
	}
	return nil
}

// step executes one step.
func (t *turn) step(st *scriptStep) error {
	// Exactly one member is set; anything else ends the stream.
	switch {
	case st.Thinking != nil:
		t.thinking = true
		return t.deltas(st, "thinking_delta")
	case st.Text != nil:
		return t.deltas(st, "text_delta")
	case st.Tool != nil:
		return t.tool(st.Tool)
	case st.Tools != nil:
		return t.tools(st.Tools)
	case st.KVSet != nil:
		return t.kvSet(st.KVSet)
	case st.KVGet != nil:
		return t.kvGet(st.KVGet)
	case st.Heartbeat != nil:
		return t.heartbeats(*st.Heartbeat, 0)
	case st.Echo != nil:
		root, leaf := t.s.api.message("interaction_update", "user_message_appended", "user_message")
		proto.Merge(leaf.Interface(), get(t.request, "action", "user_message_action", "user_message").Message().Interface())
		return t.emit(root)
	case st.Tokens != nil:
		root, leaf := t.s.api.message("interaction_update", "token_delta")
		set(leaf, "tokens", *st.Tokens)
		return t.emit(root)
	case st.Wait != nil:
		return t.wait(st.Wait)
	case st.Query != nil:
		return t.query(st.Query)
	case st.Hang != nil:
		return t.hang(st.Hang)
	case st.Checkpoint != nil:
		return t.checkpoint(st)
	case st.Send != nil:
		return t.emit(t.vars.expandMessage(st.message))
	case st.Raw != nil:
		// The script's bytes need not be valid fields, so they are added as unknown ones.
		root := dynamicpb.NewMessage(t.s.api.server)
		root.SetUnknown(st.bytes)
		return t.emit(root)
	case st.TurnEnded != nil:
		root, leaf := t.s.api.message("interaction_update", "turn_ended")
		proto.Merge(leaf.Interface(), t.vars.expandMessage(st.message))
		return t.emit(root)
	}
	return endOf(t.ctx, st)
}

// endOf ends the stream in the way that a step defines: it returns the error, or makes the connection
// break off.
func endOf(ctx context.Context, st *scriptStep) error {
	switch {
	case st.Error != nil:
		return st.Error.err()
	case st.Reset != nil:
		panic(http.ErrAbortHandler)
	}
	response.DropEnd(ctx)
	return nil
}

// deltas sends the text of a step in pieces. kind is the member of the update for one piece, which has
// the text in its field "text".
func (t *turn) deltas(st *scriptStep, kind protoreflect.Name) error {
	return paced(t.ctx, t.vars.expand(st.text), st, func(piece string) error {
		root, leaf := t.s.api.message("interaction_update", kind)
		set(leaf, "text", piece)
		if kind == "text_delta" {
			t.answer.WriteString(piece)
			t.vars.text["answer"] = t.answer.String()
		}
		return t.emit(root)
	})
}

// paced calls emit with the pieces of a text, with the sizes and pauses that the step defines.
func paced(ctx context.Context, text string, st *scriptStep, emit func(string) error) error {
	pause := 0
	for piece := range pieces(text, st.Split) {
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		if err := emit(piece); err != nil {
			return err
		}
		pause = st.PaceMS
	}
	return nil
}

// thought ends a sequence of thinking messages. The duration in it is made up, like all durations that
// the server reports.
func (t *turn) thought() error {
	t.thinking = false
	root, leaf := t.s.api.message("interaction_update", "thinking_completed")
	set(leaf, "thinking_duration_ms", int32(400+t.ids.Number(1600)))
	return t.emit(root)
}

// heartbeats sends n heartbeats, each after a pause of everyMS milliseconds.
func (t *turn) heartbeats(n, everyMS int) error {
	for range n {
		if err := t.in.sleep(t.ctx, everyMS); err != nil {
			return err
		}
		root, _ := t.s.api.message("interaction_update", "heartbeat")
		if err := t.emit(root); err != nil {
			return err
		}
	}
	return nil
}

// wait executes a pause, in which heartbeats may be sent.
func (t *turn) wait(w *scriptWait) error {
	left := w.MS
	if w.HeartbeatEveryMS > 0 {
		n := w.MS / w.HeartbeatEveryMS
		left -= n * w.HeartbeatEveryMS
		if err := t.heartbeats(n, w.HeartbeatEveryMS); err != nil {
			return err
		}
	}
	return t.in.sleep(t.ctx, left)
}

// hangHeartbeatMS is the default time between the heartbeats of a stream that hangs.
const hangHeartbeatMS = 1000

// hang sends heartbeats until the client disconnects, or until the time in the script has
// passed.
func (t *turn) hang(h *scriptHang) error {
	every := cmp.Or(h.HeartbeatEveryMS, hangHeartbeatMS)
	for left := h.MS; h.MS == 0 || left > 0; left -= every {
		if h.MS > 0 && left < every {
			return t.in.sleep(t.ctx, left)
		}
		if err := t.heartbeats(1, every); err != nil {
			return err
		}
	}
	return nil
}

// checkpoint sends the conversation's state: the state that the client sent, with this turn and its
// blobs added, and with the script's values.
func (t *turn) checkpoint(st *scriptStep) error {
	root, state := t.s.api.message("conversation_checkpoint_update")
	if has(t.request, "conversation_state") {
		proto.Merge(state.Interface(), get(t.request, "conversation_state").Message().Interface())
	}
	id := sha256.Sum256([]byte(t.vars.text["conversation_id"] + "\x00" + t.vars.text["prompt"] + "\x00" + t.answer.String()))
	turns := state.Mutable(state.Descriptor().Fields().ByName("turns")).List()
	turns.Append(protoreflect.ValueOfBytes(id[:]))
	roots := state.Mutable(state.Descriptor().Fields().ByName("root_prompt_messages_json")).List()
	for _, r := range t.roots {
		roots.Append(protoreflect.ValueOfBytes(r))
	}
	proto.Merge(state.Interface(), t.vars.expandMessage(st.message))
	t.stream.SetTurns(turns.Len())
	return t.emit(root)
}

// answerTimeout returns the time limit for a response of the client: ms milliseconds, or the script's
// default if ms is 0.
func (s *Server) answerTimeout(ms int) time.Duration {
	if ms == 0 {
		ms = s.script.AnswerTimeoutMS
	}
	return time.Duration(ms) * time.Millisecond
}

// sleep waits for a number of milliseconds. It returns the error of ctx if that ends first.
func sleep(ctx context.Context, ms int) error {
	if ms == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pieces yields a text in pieces of the given sizes in characters; the last size is repeated. Without
// sizes, it yields the whole text.
func pieces(text string, sizes []int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if len(sizes) == 0 {
			yield(text)
			return
		}
		runes := []rune(text)
		for i := 0; len(runes) > 0; i++ {
			n := min(sizes[min(i, len(sizes)-1)], len(runes))
			if !yield(string(runes[:n])) {
				return
			}
			runes = runes[n:]
		}
	}
}

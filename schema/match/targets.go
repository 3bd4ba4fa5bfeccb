package match

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/fieldpath"
	"unwire/decode/kind"
	"unwire/decode/wire"
	"unwire/schema"
)

const (
	// MaxTargets is the maximum number of places (methods, or fields of messages) whose types are searched at
	// once.
	MaxTargets = 1000

	// targetSamples is the maximum number of messages that are kept for one place.
	targetSamples = 500
	// maxTargetBytes is the maximum estimated memory of all places, in bytes.
	maxTargetBytes = 256 << 20

	// nodeBytes is the approximate size in bytes of a node of a parsed message.
	nodeBytes = 80

	// maxDeepening is the number of levels below a place that are matched if no type fits the place itself.
	maxDeepening = 8

	// maxTargetFrames is the number of frames that are listed for one place.
	maxTargetFrames = 3
)

// A Target is a place in the traffic (a method, or a field of a message) whose messages are of one type, which
// is searched.
type Target struct {
	// In is the full name of the known message type that contains the field. If there is none, it is the method
	// and direction, such as pkg.Service/Method:up, or "".
	In string
	// Path is the path of field numbers inside the message In; "" for whole frames.
	Path string
	// Frames are the addresses of the first frames with messages of this place.
	Frames []string

	// samples are the messages to be compared with types.
	samples []Sample
	// seen is the number of all messages of this place, including those that were not kept.
	seen int
}

// Targets collects messages of unknown types by place (method, or field of a message), in the order in which
// the places first occur. Make one with NewTargets.
//
// Limits: MaxTargets places, with 500 messages each.
type Targets struct {
	// Trees is the number of frames with protobuf, and Others that of other frames.
	Trees, Others int64
	// Full is set if there were more than MaxTargets places.
	Full bool

	// defs are the known definitions; only messages that they lack are collected.
	defs *schema.Schema
	// path, if not empty, restricts the search to the messages at this field path.
	path fieldpath.Path
	// list has the places in order of first occurrence.
	list []*Target
	// byName maps the names of places to the places.
	byName map[targetName]*Target

	// bytes is the estimated memory of the kept messages, in bytes.
	bytes int
	// lastTree is the parsed frame that was last counted in bytes, so that it is counted once.
	lastTree *wire.Tree
}

// A targetName identifies a place: in is a method or message type, and path the field path inside it.
type targetName struct {
	// in is the full name of the method or message type that contains the place.
	in string

	// path is the field path inside it.
	path string
}

// NewTargets returns an empty collection for the messages at a field path. If the path is empty, it collects
// the messages that defs do not describe: those of unknown methods, and those in unknown fields.
func NewTargets(defs *schema.Schema, path fieldpath.Path) *Targets {
	return &Targets{defs: defs, path: path, byName: map[targetName]*Target{}}
}

// AddMessage adds a message that is not part of an exchange. frame is its address in the result.
func (ts *Targets) AddMessage(frame string, t *wire.Tree) { ts.addFound("", frame, t) }

// FrameOptions selects which frames of a capture AddCapture adds. Address is required.
type FrameOptions struct {
	// Wanted, if set, reports whether to add a frame. Default: all frames.
	Wanted func(*decode.Frame) bool
	// Chosen is set to add each frame as a whole, not only the messages that the definitions do not describe.
	Chosen bool
	// Split selects how connections without HTTP are split into messages.
	Split decode.Splitting
	// Address returns the address of a frame for the result. part is set if the frame is reported as part of
	// its own call and not of the conversation that includes the call.
	Address func(ex *decode.Exchange, f *decode.Frame, part bool) string
}

// AddCapture adds frames of a capture's exchanges, or only of the one with the number id if it is not 0.
// Exchanges that form a conversation are joined, as by conversation.EachCall, unless part is set.
//
// Errors: those of conversation.EachCall. A damaged capture is read as far as possible.
func (ts *Targets) AddCapture(ctx context.Context, src captures.Capture, id int64, part bool, o FrameOptions) error {
	return conversation.EachCall(ctx, src, id, part, decode.Options{Split: o.Split}, func(ex *decode.Exchange, joined bool) error {
		if joined {
			conversation.DropJoined(ex)
		}
		for i := range ex.Frames {
			f := &ex.Frames[i]
			if f.End == nil && f.Close == nil && (o.Wanted == nil || o.Wanted(f)) {
				ts.addFrame(ex, f, o.Address(ex, f, joined), o.Chosen)
			}
		}
		return nil
	})
}

// addFrame adds the messages in a frame. chosen adds the frame as a whole, not only the messages that the definitions do
// not describe.
func (ts *Targets) addFrame(ex *decode.Exchange, f *decode.Frame, address string, chosen bool) {
	if f.Tree == nil || ex.CodecOf(f) == "json" {
		ts.Others++
		return
	}
	ts.Trees++

	method := fmt.Sprintf("%s/%s:%s", ex.Service, ex.RPC, f.Dir)
	// Messages of a WebSocket have no method, so their URL stands for it.
	if ex.Transport != captures.HTTP && ex.Service == "" {
		method = decode.MethodOf(&ex.Exchange, ex.Call) + ":" + f.Dir.String()
	}
	if len(ts.path) > 0 || chosen {
		ts.addFound(method, address, f.Tree)
	}
	if len(ts.path) > 0 {
		return
	}

	if md := ts.defs.FrameType(ex.Call, f.Dir); md != nil {
		open := unknownMessages{targets: ts, frame: address, tree: f.Tree}
		open.addUnknown(0, md)
	} else if !chosen && (ex.Service != "" || ex.Transport != captures.HTTP) {
		ts.addFound(method, address, f.Tree)
	}
}

// Empty reports whether no messages were collected.
func (ts *Targets) Empty() bool { return len(ts.list) == 0 }

// Match yields each place with the result of comparing its messages with all types. Without a path, it then
// continues inside the messages: with the unknown fields of a matched type, or with nested messages if no type
// fits.
func (ts *Targets) Match(m *Matcher) iter.Seq2[*Target, *Result] {
	return func(yield func(*Target, *Result) bool) {
		// addBelow appends to the list.
		for i := 0; i < len(ts.list); i++ {
			t := ts.list[i]
			r := m.Match(t.samples)
			r.Samples = t.seen
			if len(ts.path) == 0 {
				ts.addBelow(t, r)
			}
			if !yield(t, r) {
				return
			}
		}
	}
}

// addFound adds the messages at ts.path in a frame. in is the method, and frame the address.
func (ts *Targets) addFound(in, frame string, t *wire.Tree) {
	if len(ts.path) == 0 {
		ts.addSample(targetName{in: in}, frame, Sample{Tree: t})
		return
	}
	for _, n := range t.Find(ts.path) {
		if t.IsMessage(n) {
			ts.addSample(targetName{in, ts.path.String()}, frame, Sample{Tree: t, Node: n})
		}
	}
}

// addSample adds a message of the place called name. frame is the address of its frame.
func (ts *Targets) addSample(name targetName, frame string, s Sample) {
	t := ts.byName[name]
	if t == nil {
		if len(ts.list) == MaxTargets {
			ts.Full = true
			return
		}
		t = &Target{In: name.in, Path: name.path}
		ts.byName[name] = t
		ts.list = append(ts.list, t)
	}

	t.seen++
	// Samples of one place share trees, which are counted once.
	if len(t.samples) < targetSamples && (ts.bytes < maxTargetBytes || len(t.samples) == 0) {
		t.samples = append(t.samples, s)
		if s.Tree != ts.lastTree {
			ts.lastTree = s.Tree
			ts.bytes += len(s.Tree.Data) + len(s.Tree.Nodes)*nodeBytes
		}
	}
	if len(t.Frames) < maxTargetFrames && !slices.Contains(t.Frames, frame) {
		t.Frames = append(t.Frames, frame)
	}
}

// addBelow adds the places inside the messages of t that the result r does not explain.
func (ts *Targets) addBelow(t *Target, r *Result) {
	md := ts.defs.Message(string(r.FullName()))
	if md == nil && (r.Conclusion != NoMatch || strings.Count(t.Path, ".") >= maxDeepening) {
		return
	}

	for _, s := range t.samples {
		open := unknownMessages{targets: ts, frame: cmp.Or(t.Frames...), tree: s.Tree}
		// The type is known: only its unknown fields are new places.
		if md != nil {
			open.addUnknown(s.Node, md)
			continue
		}
		for c := range s.Tree.Children(s.Node) {
			if n := s.Tree.Node(c); open.holdsMessage(c) {
				path := strings.TrimPrefix(t.Path+"."+strconv.FormatUint(n.Number, 10), ".")
				ts.addSample(targetName{t.In, path}, open.frame, Sample{Tree: s.Tree, Node: c})
			}
		}
	}
}

// unknownMessages finds, in one frame, messages in fields that the definitions lack.
type unknownMessages struct {
	// targets is the collection to which the messages are added.
	targets *Targets
	// frame is the address of the frame, for the result.
	frame string
	// tree is the parsed message of the frame.
	tree *wire.Tree
	// reader decides whether a payload is a message. It is created on first use.
	reader *kind.Reader
}

// addUnknown adds the messages in unknown fields of the message at index at, whose type is md, recursively.
func (o *unknownMessages) addUnknown(at int32, md protoreflect.MessageDescriptor) {
	for c := range o.tree.Children(at) {
		n := o.tree.Node(c)
		if n.Type != wire.Len && n.Type != wire.StartGroup || n.First == wire.None {
			continue
		}
		fd := md.Fields().ByNumber(protoreflect.FieldNumber(min(n.Number, 1<<29)))
		switch {
		case fd == nil && o.holdsMessage(c):
			o.targets.addSample(targetName{string(md.FullName()), strconv.FormatUint(n.Number, 10)}, o.frame, Sample{Tree: o.tree, Node: c})
		case fd != nil && fd.Message() != nil:
			o.addUnknown(c, fd.Message())
		}
	}
}

// holdsMessage reports whether the payload of node c is more likely a message than text.
func (o *unknownMessages) holdsMessage(c int32) bool {
	if o.tree.Node(c).First == wire.None {
		return false
	}
	if o.reader == nil {
		o.reader = kind.NewReader(o.tree, nil)
	}
	best, _, _ := o.reader.Best(c)
	return best == wire.KindMessage || best == wire.KindGroup
}

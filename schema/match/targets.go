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
	// MaxTargets is the largest number of places that are compared at once.
	MaxTargets = 1000

	// targetSamples is the largest number of messages kept for one place, and maxTargetBytes the limit
	// of memory for all places, in bytes.
	targetSamples = 500
	// maxTargetBytes limits the estimated memory of all places, in bytes.
	maxTargetBytes = 256 << 20

	// nodeBytes is the approximate size of a node of a tree.
	nodeBytes = 80

	// maxDeepening is the number of levels below a place that are matched if no type fits the place itself.
	maxDeepening = 8

	// maxTargetFrames is the number of frames that are listed for one place.
	maxTargetFrames = 3
)

// A Target is a place in the traffic, such as a field or a method, whose messages have one unknown
// type.
type Target struct {
	// In is the known message type that contains the place. If there is none, it is the method and direction,
	// such as pkg.Service/Method:up, or "".
	In string
	// Path is the field path of the place inside the message In; "" for whole frames.
	Path string
	// Frames are the addresses of the first frames that contain the place.
	Frames []string

	// samples are the messages that are compared with types.
	samples []Sample
	// seen is the number of all messages at the place, including those that were not kept.
	seen int
}

// Targets collects messages by place, in the order of their first occurrence. Make one with NewTargets.
//
// Limits: MaxTargets places, with 500 messages each.
type Targets struct {
	// Trees is the number of protobuf frames, and Others that of other frames.
	Trees, Others int64
	// Full means that there were more than MaxTargets places.
	Full bool

	// defs are the known definitions; only messages that they lack are collected.
	defs *schema.Schema
	// path restricts the places to a field path; an empty path means all.
	path fieldpath.Path
	// list has the places in order of first occurrence.
	list []*Target
	// byName maps targetNames to places.
	byName map[targetName]*Target

	// bytes estimates the memory of the samples. lastTree is the tree that was counted last.
	bytes int
	// lastTree is the tree that was counted most recently.
	lastTree *wire.Tree
}

// A targetName identifies a place: a method or message, and a path in it.
type targetName struct{ in, path string }

// NewTargets returns a collection of the messages at a path. If the path is empty, it collects the messages that
// defs do not describe: those of unknown methods, and those in unknown fields.
func NewTargets(defs *schema.Schema, path fieldpath.Path) *Targets {
	return &Targets{defs: defs, path: path, byName: map[targetName]*Target{}}
}

// AddMessage adds a message that is not part of an exchange. frame is its name in the result.
func (ts *Targets) AddMessage(frame string, t *wire.Tree) { ts.addFound("", frame, t) }

// FrameOptions selects frames of a capture. Address is required.
type FrameOptions struct {
	// Wanted, if set, reports whether to add a frame. Default: all frames.
	Wanted func(*decode.Frame) bool
	// Chosen adds each frame as a whole, and not only the messages that the definitions do not describe.
	Chosen bool
	// Split selects how connections without HTTP are split into messages.
	Split decode.Splitting
	// Address returns the address of a frame. part is set if the frame is the call's own and not part of its
	// conversation.
	Address func(ex *decode.Exchange, f *decode.Frame, part bool) string
}

// AddCapture adds frames of the exchanges of a capture, or only of the one with the number id if it is
// not 0, joined to conversations as by conversation.EachCall. part restricts this to the single call.
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

// addFrame adds a frame with the given address. A chosen frame is added as a whole.
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

// Empty reports whether no place was collected.
func (ts *Targets) Empty() bool { return len(ts.list) == 0 }

// Match yields each place with the result of comparing it with all types. Without a path it then
// continues inside the place: with the unknown fields of a matched type, or with the nested messages if
// no type fits.
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

// addFound adds the messages at the path in a frame's tree.
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

// addSample adds a message to the samples of a place.
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

// addBelow adds the places inside t that its result does not explain.
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

// unknownMessages finds messages in fields that a type does not declare.
type unknownMessages struct {
	// targets receives the found messages.
	targets *Targets
	// frame is the address of the frame, for the result.
	frame string
	// tree is the parsed message of the frame.
	tree *wire.Tree
	// reader decides whether a payload is a message. It is created on first use.
	reader *kind.Reader
}

// addUnknown adds the unknown messages inside the message at a node, whose type is md.
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

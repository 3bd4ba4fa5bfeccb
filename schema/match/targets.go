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
	// MaxTargets bounds the places that are matched at once.
	MaxTargets = 1000

	// targetSamples bounds the messages that are kept of one place, and
	// maxTargetBytes what those of all places take.
	targetSamples  = 500
	maxTargetBytes = 256 << 20

	// nodeBytes is what a tree's node takes, roughly.
	nodeBytes = 80

	// maxDeepening is how many levels below a place are matched where nothing fits it.
	maxDeepening = 8

	// maxTargetFrames is how many frames are named of one place.
	maxTargetFrames = 3
)

// A Target is a place whose messages are of one type.
type Target struct {
	// In is the known message that has the place, or else the method with its
	// direction, pkg.Service/Method:up; "" where there is neither.
	In string
	// Path is the place below In; "" for all of a frame.
	Path string
	// Frames are the first frames that have it.
	Frames []string

	samples []Sample
	seen    int
}

// Targets collects messages by place, in the order in which they are met.
//
// Limits: MaxTargets places, and of each 500 messages.
type Targets struct {
	// Trees counts the frames that were looked at, and Others those that are no
	// protobuf.
	Trees, Others int64
	// Full says that there were more than MaxTargets places.
	Full bool

	defs   *schema.Schema
	path   fieldpath.Path
	list   []*Target
	byName map[targetName]*Target

	// bytes is what the samples take; lastTree is the last tree that was counted.
	bytes    int
	lastTree *wire.Tree
}

// A targetName is what tells a target from others.
type targetName struct{ in, path string }

// NewTargets returns targets at a path of the messages; of a path of no numbers,
// what defs leave open: messages of unknown methods, and unknown fields that hold
// messages.
func NewTargets(defs *schema.Schema, path fieldpath.Path) *Targets {
	return &Targets{defs: defs, path: path, byName: map[targetName]*Target{}}
}

// AddMessage adds a message outside any exchange, of the name frame.
func (ts *Targets) AddMessage(frame string, t *wire.Tree) { ts.addFound("", frame, t) }

// FrameOptions select frames of a capture.
type FrameOptions struct {
	// Wanted, if set, reports whether a frame is added.
	Wanted func(*decode.Frame) bool
	// Chosen says that all of each frame is a place, and not only what the definitions
	// leave open in it.
	Chosen bool
	// Split says how the bytes of exchanges without HTTP divide into messages.
	Split decode.Splitting
	// Address names a frame of an exchange, or of the part of a conversation.
	Address func(ex *decode.Exchange, f *decode.Frame, part bool) string
}

// AddCapture adds frames of the exchanges of a capture, or only of the one with the
// number id if that is not 0, as conversation.EachCall walks them.
//
// Errors: those of conversation.EachCall, of a damaged capture after all that is readable.
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

// addFrame adds a frame of an exchange, which goes by the name address. Of a frame
// that was chosen, all of it is a place.
func (ts *Targets) addFrame(ex *decode.Exchange, f *decode.Frame, address string, chosen bool) {
	if f.Tree == nil || ex.CodecOf(f) == "json" {
		ts.Others++
		return
	}
	ts.Trees++
	method := fmt.Sprintf("%s/%s:%s", ex.Service, ex.RPC, f.Dir)
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
		open := openFields{targets: ts, frame: address, tree: f.Tree}
		open.addUnknown(0, md)
	} else if !chosen && (ex.Service != "" || ex.Transport != captures.HTTP) {
		ts.addFound(method, address, f.Tree)
	}
}

// Empty reports whether there is no place.
func (ts *Targets) Empty() bool { return len(ts.list) == 0 }

// Match yields the places with what each may be. Where no path was given, the places
// that a result leaves open come behind: of a match, the unknown fields; where there
// is none, the messages inside.
func (ts *Targets) Match(m *Matcher) iter.Seq2[*Target, *Result] {
	return func(yield func(*Target, *Result) bool) {
		// The list grows by what is below.
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

// addFound adds what the path finds in a tree.
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

// addSample adds a message to the place of a name.
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

// addBelow adds the places that a result leaves open.
func (ts *Targets) addBelow(t *Target, r *Result) {
	md := ts.defs.Message(string(r.FullName()))
	if md == nil && (r.Conclusion != NoMatch || strings.Count(t.Path, ".") >= maxDeepening) {
		return
	}
	for _, s := range t.samples {
		open := openFields{targets: ts, frame: cmp.Or(t.Frames...), tree: s.Tree}
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

// openFields finds the fields of a tree that its type has not and that hold messages.
type openFields struct {
	targets *Targets
	frame   string
	tree    *wire.Tree
	reader  *kind.Reader
}

// addUnknown adds those of the message at a node, and of the messages in it.
func (o *openFields) addUnknown(at int32, md protoreflect.MessageDescriptor) {
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

// holdsMessage reports whether node c is rather a message than text.
func (o *openFields) holdsMessage(c int32) bool {
	if o.tree.Node(c).First == wire.None {
		return false
	}
	if o.reader == nil {
		o.reader = kind.NewReader(o.tree, nil)
	}
	best, _, _ := o.reader.Best(c)
	return best == wire.KindMessage || best == wire.KindGroup
}

package ui

import (
	"context"
	"slices"
	"sync"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/ui/outline"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/transcript"
	"unwire/schema"
)

const (
	// keptOutlines is how many frames of an exchange are kept as outlines.
	keptOutlines = 4

	// followedFrames is the number of frames from which on an exchange that is in flight is not decoded anew for
	// each frame, and runs of frames are folded only when it has ended.
	followedFrames = 500

	// maxFolded is the largest number of frames of which runs are folded: every frame must be summarised for it.
	maxFolded = 10_000
)

// A document is an exchange that the page shows, decoded.
type document struct {
	// id is the number of the exchange.
	id int64

	// part means that the exchange is shown alone, even if it is one of several that carry a conversation.
	part bool

	// last is the capture's last number when the document was brought up to date.
	last int64

	// mu guards the fields below, and last. Reading a field changes the collected evidence for its type,
	// so readers lock it, too.
	mu sync.Mutex

	// at is the decoded exchange.
	at conversation.Resolved

	// views are how messages are read, with the types that were chosen or inferred; nil until the exchange
	// was decoded.
	views *query.Views

	// defs are the definitions that apply; nil for none.
	defs *schema.Schema

	// notes are the notes and marks on the exchange, its frames and its fields.
	notes *query.Notes

	// damage describes which part could not be read or decoded; "" for none.
	damage string

	// positions are the positions in at.Frames of the frames of each direction, by their numbers. The
	// index is dir&1.
	positions [2][]int

	// folded are the lines of foldedLines; nil until they are needed.
	folded []*contract.TimelineLine

	// tools are the frames that have a tool call or its result, by direction (dir&1) and number.
	tools [2]map[int]bool

	// outlines are the outlines of the frames that were shown last, the most recent first.
	outlines []*frameOutline

	// follower decodes the new frames of an exchange that is in flight and has many frames; nil for other
	// exchanges.
	follower *decode.Follower
}

// A frameOutline is a frame with its outline.
type frameOutline struct {
	// frame is the frame.
	frame *decode.Frame

	// rows is the outline of the frame.
	rows *outline.Outline
}

// document returns the capture and the decoded exchange that the parameters c, x and part name. The
// caller must unlock the document.
func (q *request) document(ctx context.Context) (*file, *document, error) {
	f, err := q.file()
	if err != nil {
		return nil, nil, err
	}
	id, err := q.number("x", 0)
	if err != nil {
		return nil, nil, err
	}
	d, err := f.document(ctx, id, q.query.Get("part") != "")
	return f, d, err
}

// document returns the exchange id, decoded and up to date. With part, it is the exchange alone, even if
// it is one of several that carry a conversation. The caller must unlock the document.
func (f *file) document(ctx context.Context, id int64, part bool) (*document, error) {
	c, err := f.open()
	if err != nil {
		return nil, err
	}
	last, err := c.LastNumber(ctx)
	if err != nil {
		return nil, err
	}
	f.documentsMu.Lock()
	at := slices.IndexFunc(f.documents, func(d *document) bool { return d.id == id && d.part == part })
	d := &document{id: id, part: part}
	if at >= 0 {
		d = f.documents[at]
		f.documents = slices.Delete(f.documents, at, at+1)
	}
	f.documents = slices.Insert(f.documents, 0, d)
	f.documents = f.documents[:min(len(f.documents), keptDocuments)]
	f.documentsMu.Unlock()

	d.mu.Lock()
	if err := f.update(ctx, c, d, last); err != nil {
		d.mu.Unlock()
		return nil, err
	}
	return d, nil
}

// update brings a document up to date with the capture, whose last number is last. It decodes no more
// than necessary.
func (f *file) update(ctx context.Context, c *query.Capture, d *document, last int64) error {
	if d.views != nil && d.last == last {
		return nil
	}
	if d.views == nil || d.at.Joined != nil || d.at.Head != 0 {
		return f.decode(ctx, c, d, last)
	}

	// While other exchanges are recorded, this one stays as it was decoded.
	changed, err := c.HasChangedSince(ctx, d.id, d.last)
	if err != nil {
		return err
	}
	if changed {
		if d.at.Ended() || len(d.at.Frames) < followedFrames {
			return f.decode(ctx, c, d, last)
		}
		if err := f.follow(ctx, c, d); err != nil {
			return err
		}
	}

	// Notes are few, and are read anew in any case.
	notes, err := c.NotesOf(ctx, d.at)
	if err != nil {
		return err
	}
	d.notes, d.last = notes, last
	return nil
}

// follow decodes the frames that were recorded since the last call for an exchange that is in flight.
func (f *file) follow(ctx context.Context, c *query.Capture, d *document) error {
	var err error
	if d.follower == nil {
		d.follower, err = decode.Follow(ctx, c.Store, d.id, decode.Options{Split: c.Splitting})
		d.forgetFrames()
	} else {
		err = d.follower.Update(ctx)
	}
	if d.follower == nil || ctx.Err() != nil {
		d.follower = nil
		return err
	}
	if err == nil {
		err = d.follower.Exchange().Err
	}
	d.damage = ""
	if err != nil {
		d.damage = app.PlainText(err)
	}
	if d.at.Exchange = d.follower.Exchange(); d.at.Ended() {
		d.follower = nil
		d.forgetFrames()
	}
	// The array of frames may have been replaced.
	d.outlines, d.folded, d.tools = nil, nil, [2]map[int]bool{}
	d.addPositions()
	return nil
}

// forgetFrames drops everything that was derived from the frames.
func (d *document) forgetFrames() {
	d.positions, d.outlines, d.folded, d.tools = [2][]int{}, nil, nil, [2]map[int]bool{}
}

// addPositions adds the positions of frames that have none yet.
func (d *document) addPositions() {
	for i := len(d.positions[0]) + len(d.positions[1]); i < len(d.at.Frames); i++ {
		dir := d.at.Frames[i].Dir & 1
		d.positions[dir] = append(d.positions[dir], i)
	}
}

// decode decodes the whole exchange of a document. last is the capture's last number.
func (f *file) decode(ctx context.Context, c *query.Capture, d *document, last int64) error {
	at, damage := c.Resolve(ctx, d.id, d.part)
	if at.Exchange == nil || ctx.Err() != nil {
		return damage
	}
	defs, err := f.definitions(ctx)
	if err != nil {
		return err
	}
	notes, err := c.NotesOf(ctx, at)
	if damage == nil {
		damage = err
	}
	d.at, d.defs, d.notes, d.last, d.follower = at, defs, notes, last, nil
	d.views = c.Views(ctx, at, defs)
	if damage == nil {
		damage = at.Err
	}
	d.damage = ""
	if damage != nil {
		d.damage = app.PlainText(damage)
	}
	d.forgetFrames()
	d.addPositions()
	return nil
}

// foldedLines returns the lines of the list of frames, with each run of similar frames on one line; nil
// if there are too many frames for that.
func (d *document) foldedLines() []*contract.TimelineLine {
	most := maxFolded
	if !d.at.Ended() {
		most = followedFrames
	}
	if d.folded == nil && len(d.at.Frames) <= most {
		d.folded = render.Timeline(d.at.Exchange, d.defs)
		d.findTools()
	}
	return d.folded
}

// findTools sets tools from the transcript of the exchange.
func (d *document) findTools() {
	d.tools = [2]map[int]bool{{}, {}}
	ex := *d.at.Exchange
	if ex.Transport != captures.HTTP && ex.Transport != captures.WebSocket {
		return
	}
	ex.Frames = decode.WithoutControl(ex.Frames)
	for _, tool := range transcript.Extract(&ex, transcript.Options{}).Tools {
		for _, seq := range tool.Frames {
			// Arguments are what the server asks for.
			d.tools[captures.Down&1][seq] = true
		}
		for _, seq := range tool.ResultFrames {
			dir := captures.Up
			if tool.ResultDir == captures.Down.String() {
				dir = captures.Down
			}
			d.tools[dir&1][seq] = true
		}
	}
}

// position returns the position in at.Frames of the frame with a direction and number.
func (d *document) position(dir captures.Direction, seq int) (int, error) {
	if list := d.positions[dir&1]; seq >= 0 && seq < len(list) {
		return list[seq], nil
	}
	return 0, notFound("frame %s/%d does not exist", dir, seq)
}

// frame returns the frame that the parameter f of a request names, such as down/3.
func (d *document) frame(q *request) (*decode.Frame, error) {
	text := q.query.Get("f")
	a := query.ParseAddress("F.uwc#1/" + text)
	if a.Frame < 0 {
		return nil, badRequest("the parameter f must be a frame, such as down/3, not %q", text)
	}
	i, err := d.position(a.Dir, a.Frame)
	if err != nil {
		return nil, err
	}
	return &d.at.Frames[i], nil
}

// outline returns the outline of a frame. It keeps the outlines of the last keptOutlines frames.
func (d *document) outline(f *decode.Frame) *outline.Outline {
	at := slices.IndexFunc(d.outlines, func(o *frameOutline) bool { return o.frame == f })
	var o *frameOutline
	if at >= 0 {
		o = d.outlines[at]
		d.outlines = slices.Delete(d.outlines, at, at+1)
	} else {
		o = &frameOutline{frame: f}
		if f.Tree != nil {
			o.rows = outline.Message(f.Data, d.view(f).Fields(f.Tree))
		} else {
			o.rows = outline.JSON(f.Data)
		}
	}
	d.outlines = slices.Insert(d.outlines, 0, o)
	d.outlines = d.outlines[:min(len(d.outlines), keptOutlines)]
	return o.rows
}

// view returns how the messages of a frame are read.
func (d *document) view(f *decode.Frame) decode.View { return d.views.Of(d.at.Call, f.Dir) }

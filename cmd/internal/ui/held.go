package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"unwire/captures"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/ui/outline"
	"unwire/decode"
	"unwire/decode/wire"
	"unwire/mitm/intercept"
	"unwire/replay/edit"
)

const (
	// heldInterval is how often the recorder of a capture is asked for held frames, and idleInterval how often it is
	// looked for while there is none.
	heldInterval, idleInterval = 100 * time.Millisecond, 500 * time.Millisecond

	// heldAtOnce is the size of held frames in bytes above which the recorder is asked less often: an answer has them
	// all.
	heldAtOnce = 1 << 20

	// maxHeldEdits bounds the edits of a held frame.
	maxHeldEdits = 1000
)

// heldEndpoints returns the API endpoints about the frames that a recorder holds until the user decides
// about them.
func heldEndpoints() []endpoint {
	return []endpoint{
		{path: "held", answer: answerHeld},
		{path: "held/rows", answer: answerHeldRows},
		{path: "held/edit", post: true, answer: editHeld},
		{path: "held/decide", post: true, answer: decideHeld},
	}
}

// heldFrames are the frames that the recorder of a capture holds.
type heldFrames struct {
	// mu guards the fields below.
	mu sync.Mutex

	// frames are the held frames when the recorder was asked last.
	frames []intercept.Frame

	// drafts are the frames that the user has looked at, by the recorder's number of the frame.
	drafts map[int64]*draft
}

// A draft is a held frame with the user's edits.
type draft struct {
	// frame is the held frame without edits.
	frame intercept.Frame

	// data is the message after the edits.
	data []byte

	// view is how the message is read.
	view decode.View

	// edits are the edits in the order in which they were made, in the form of --set of 'unwire
	// intercept'.
	edits []string

	// rows is the outline of data; nil if it must be made again.
	rows *outline.Outline
}

// ask gets the held frames from the recorder of the capture at path, and drops the drafts of frames that
// are not held any more. recorded is whether a recorder runs; without one, no frames are held.
func (h *heldFrames) ask(ctx context.Context, path string) (frames []intercept.Frame, recorded bool, err error) {
	c, err := intercept.Dial(path)
	if err == nil {
		frames, err = c.Held(ctx, 0, 0)
	}
	recorded = err == nil
	if err != nil && !errors.Is(err, intercept.ErrNoRecorder) {
		return nil, false, err
	}

	// Drafts of frames that are not held any more are dropped.
	h.mu.Lock()
	defer h.mu.Unlock()
	h.frames = frames
	for id := range h.drafts {
		if !slices.ContainsFunc(frames, func(f intercept.Frame) bool { return f.ID == id }) {
			delete(h.drafts, id)
		}
	}
	return frames, recorded, nil
}

// edits returns the number of edits of a held frame.
func (h *heldFrames) edits(id int64) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := h.drafts[id]; d != nil {
		return len(d.edits)
	}
	return 0
}

// A heldLine is a held frame without its message, as the page lists it.
type heldLine struct {
	// ID is the recorder's number of the held frame.
	ID int64 `json:"id"`

	// Exchange is the number of the exchange.
	Exchange int64 `json:"exchange"`

	// Method is the RPC method, as /package.Service/Method; "" if the exchange is not an RPC.
	Method string `json:"method"`

	// URL is the URL of the request.
	URL string `json:"url"`

	// Dir is the direction, up or down.
	Dir string `json:"dir"`

	// Number is the number of the frame within its direction.
	Number int `json:"frame"`

	// Rule is the rule that holds the frame.
	Rule string `json:"rule"`

	// Until is when the recorder forwards the frame unchanged if nobody decides.
	Until time.Time `json:"until"`

	// Len is the size of the message in bytes.
	Len int `json:"len"`

	// Edits is how many edits the user has made, in any tab of the browser.
	Edits int `json:"edits"`
}

// answerHeld implements the endpoint held. It waits until the held frames differ from the state that the
// parameter after names, and returns them without their messages.
func answerHeld(ctx context.Context, q *request) (any, error) {
	f, err := q.file()
	if err != nil {
		return nil, err
	}
	after := q.query.Get("after")
	deadline := time.After(changeWait)
	for {
		frames, recorded, err := f.held.ask(ctx, f.path)
		if err != nil {
			return nil, err
		}
		// The state has the numbers of all held frames, so that it changes when one is edited or released elsewhere, too.
		state, size, list := fmt.Sprint(recorded), 0, []heldLine{}
		for i := range frames {
			h := &frames[i]
			edits := f.held.edits(h.ID)
			state += fmt.Sprintf(".%d:%d", h.ID, edits)
			size += len(h.Data)
			list = append(list, heldLine{h.ID, h.Exchange, h.Method, h.URL, h.Dir, h.Number, h.Rule, h.Until, len(h.Data), edits})
		}
		answer := map[string]any{"v": 1, "state": state, "held": list, "recorded": recorded}
		if state != after {
			return answer, nil
		}

		// Nothing has changed: ask again later.
		interval := heldInterval
		if !recorded || size > heldAtOnce {
			interval = idleInterval
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline:
			return answer, nil
		case <-time.After(interval):
		}
	}
}

// withDraft calls do with the capture and the draft of the held frame that the parameter id names, and
// returns what do returns. It creates the draft if the frame has none.
func withDraft(ctx context.Context, q *request, do func(*file, *draft) (any, error)) (any, error) {
	f, err := q.file()
	if err != nil {
		return nil, err
	}
	id, err := q.number("id", 0)
	if err != nil {
		return nil, err
	}
	h := &f.held
	h.mu.Lock()
	defer h.mu.Unlock()
	at := slices.IndexFunc(h.frames, func(f intercept.Frame) bool { return f.ID == id })
	if at < 0 {
		return nil, &failure{http.StatusGone, fmt.Sprintf("unwire no longer holds the frame %d", id)}
	}

	// The draft is made when the user looks at the frame first.
	d := h.drafts[id]
	if d == nil {
		d = &draft{frame: h.frames[at], data: h.frames[at].Data}
		if d.view, err = f.viewOfMethod(ctx, &d.frame); err != nil {
			return nil, err
		}
		if h.drafts == nil {
			h.drafts = map[int64]*draft{}
		}
		h.drafts[id] = d
	}
	if d.rows == nil {
		d.rows = d.outline()
	}
	return do(f, d)
}

// viewOfMethod returns how a held message is read, by its method and direction.
func (f *file) viewOfMethod(ctx context.Context, h *intercept.Frame) (decode.View, error) {
	c, defs, err := f.openWithDefinitions(ctx)
	if err != nil {
		return decode.View{}, err
	}
	call := decode.Call{}
	call.Service, call.RPC, _ = strings.Cut(strings.TrimPrefix(h.Method, "/"), "/")
	dir := captures.Up
	if h.Dir == captures.Down.String() {
		dir = captures.Down
	}
	return c.ViewsOfMethod(ctx, h.Method, defs).Of(call, dir), nil
}

// outline returns the outline of the edited message.
func (d *draft) outline() *outline.Outline {
	if d.frame.JSON {
		return outline.JSON(d.data)
	}
	return outline.Message(d.data, d.view.Fields(wire.Parse(d.data, wire.Options{})))
}

// answerHeldRows implements the endpoint held/rows. It returns a range of the rows of a held frame's
// tree, with the user's edits. A frame that was released while the page asked for its rows has none: the page closes the
// panel as soon as the endpoint held says so.
func answerHeldRows(ctx context.Context, q *request) (any, error) {
	from, to, err := q.window(maxRowsSent)
	if err != nil {
		return nil, err
	}
	answer, err := withDraft(ctx, q, func(_ *file, d *draft) (any, error) {
		list := []*rowLine{}
		for i := min(from, len(d.rows.Rows)); i < min(to, len(d.rows.Rows)); i++ {
			list = append(list, rowOf(d.rows, int32(i)))
		}
		edits := d.edits
		if edits == nil {
			edits = []string{}
		}
		return map[string]any{"v": 1, "total": len(d.rows.Rows), "rows": list, "edits": edits, "len": len(d.data)}, nil
	})
	if f, ok := errors.AsType[*failure](err); ok && f.status == http.StatusGone {
		return map[string]any{"v": 1, "total": 0, "rows": []*rowLine{}, "edits": []string{}, "len": 0}, nil
	}
	return answer, err
}

// editHeld implements the endpoint held/edit. It changes a field of a draft, or discards its edits. It
// forwards nothing.
func editHeld(ctx context.Context, q *request) (any, error) {
	var asked struct {
		// Edit is an edit of 'unwire intercept --set', such as 1.2=x; "" discards all edits.
		Edit string `json:"edit"`
	}
	if err := q.parse(&asked); err != nil {
		return nil, err
	}
	return withDraft(ctx, q, func(_ *file, d *draft) (any, error) {
		data, edits := d.frame.Data, []string(nil)
		if asked.Edit != "" {
			if len(d.edits) >= maxHeldEdits {
				return nil, badRequest("the request has more than %d edits", maxHeldEdits)
			}
			// Apply checks the value against the declared type, or else against the wire type of the field.
			e, err := edit.Parse("set", asked.Edit)
			if err != nil {
				return nil, badRequest("%v", err)
			}
			if data, _, err = e.Apply(d.data, d.frame.JSON, d.view.Type); err != nil {
				return nil, badRequest("%v", err)
			}
			edits = append(slices.Clip(d.edits), asked.Edit)
		}
		d.data, d.edits, d.rows = data, edits, nil
		return map[string]any{"v": 1, "len": len(data)}, nil
	})
}

// decideHeld implements the endpoint held/decide. It releases or drops a held frame, or releases all of
// them.
func decideHeld(ctx context.Context, q *request) (any, error) {
	var asked struct {
		// Action is release, drop, or release-all. A frame that was edited is released as it was edited.
		Action string `json:"action"`
	}
	if err := q.parse(&asked); err != nil {
		return nil, err
	}
	f, err := q.file()
	if err != nil {
		return nil, err
	}
	c, err := intercept.Dial(f.path)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	switch asked.Action {
	case "release-all":
		n, err := c.ReleaseAll(ctx)
		if err != nil {
			return nil, badRequest("%v", err)
		}
		out, err := line(&contract.Decided{Event: "decided", Action: asked.Action, Frames: n})
		return map[string]any{"v": 1, "decided": out}, err
	case "release", "drop":
	default:
		return nil, badRequest("the action must be release, drop or release-all, not %q", asked.Action)
	}
	return withDraft(ctx, q, func(_ *file, d *draft) (any, error) {
		// What was edited replaces the frame; otherwise the recorder forwards the bytes that it has.
		decision := intercept.Decision{Action: asked.Action}
		if asked.Action == "release" && len(d.edits) > 0 {
			decision = intercept.Decision{Action: "replace", Messages: [][]byte{d.data}}
		}
		if err := c.Decide(ctx, d.frame.ID, decision); err != nil {
			return nil, badRequest("frame %d: %v", d.frame.ID, err)
		}
		out, err := line(&contract.Decided{Event: "decided", Action: decision.Action, ID: d.frame.ID})
		return map[string]any{"v": 1, "decided": out}, err
	})
}

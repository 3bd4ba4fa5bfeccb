package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"

	"unwire/cmd/internal/query"
)

// diffEndpoints returns the API endpoints that compare captures, exchanges or frames.
func diffEndpoints() []endpoint {
	return []endpoint{
		{path: "diff", answer: answerDiff},
		{path: "diff/bytes", answer: answerByteDiff},
	}
}

// sideText is an address behind the name of a capture: nothing, an exchange or a frame.
var sideText = regexp.MustCompile(`^#?([0-9]{1,18}(?:/part)?(?:/(?:up|down)/[0-9]{1,9})?)?$`)

// side returns the capture and the address of one side of a comparison. name is "a" or "b": the parameter
// of that name is the address without the capture, and the parameter ac or bc the number of the capture.
func (q *request) side(name string) (*file, query.Address, error) {
	i, err := q.number(name+"c", 0)
	if err != nil {
		return nil, query.Address{}, err
	}
	f, err := q.fileAt(int(i))
	if err != nil {
		return nil, query.Address{}, err
	}
	m := sideText.FindStringSubmatch(q.query.Get(name))
	if m == nil {
		return nil, query.Address{}, badRequest("%q must be an exchange or a frame, such as 7 or 7/up/0, or empty for the whole capture", q.query.Get(name))
	}
	if m[1] == "" {
		return f, query.Address{File: f.path, Frame: -1}, nil
	}
	return f, query.ParseAddress(f.path + "#" + m[1]), nil
}

// answerDiff implements the endpoint diff. It returns the differences between the structures of two
// frames, exchanges or captures, as 'unwire diff' prints them.
func answerDiff(ctx context.Context, q *request) (any, error) {
	fa, a, err := q.side("a")
	if err != nil {
		return nil, err
	}
	fb, b, err := q.side("b")
	if err != nil {
		return nil, err
	}
	defs, err := fa.definitions(ctx)
	if err == nil && defs == nil {
		defs, err = fb.definitions(ctx)
	}
	if err != nil {
		return nil, err
	}
	list, err := query.Diff(ctx, a.String(), b.String(), query.DiffOptions{
		Definitions: defs,
		Open:        q.options.Open,
		Read:        func(name string) ([]byte, error) { return nil, badRequest("%s is not a capture", name) },
	})
	if err != nil {
		return nil, badRequest("%v", err)
	}
	changes := []json.RawMessage{}
	for i := range list {
		some, err := lines(list[i].Lines(true))
		if err != nil {
			return nil, err
		}
		changes = append(changes, some...)
	}
	return map[string]any{"v": 1, "a": a.String(), "b": b.String(), "changes": changes}, nil
}

// answerByteDiff implements the endpoint diff/bytes. It compares the bytes of two frames and returns how
// many are equal at the beginning and at the end, and of each frame the bytes between, up to a limit.
func answerByteDiff(ctx context.Context, q *request) (any, error) {
	fa, a, err := q.side("a")
	if err != nil {
		return nil, err
	}
	fb, b, err := q.side("b")
	if err != nil {
		return nil, err
	}
	if a.Frame < 0 || b.Frame < 0 {
		return nil, badRequest("only the bytes of frames can be compared: give two frames, such as 7/up/0")
	}
	left, err := frameData(ctx, fa, a)
	if err != nil {
		return nil, err
	}
	right, err := frameData(ctx, fb, b)
	if err != nil {
		return nil, err
	}
	head := 0
	for head < min(len(left), len(right)) && left[head] == right[head] {
		head++
	}
	tail := 0
	for tail < min(len(left), len(right))-head && left[len(left)-1-tail] == right[len(right)-1-tail] {
		tail++
	}
	const shown = 8 << 10
	cut := func(data []byte) []byte {
		middle := data[head : len(data)-tail]
		return middle[:min(len(middle), shown)]
	}
	return map[string]any{
		"v": 1, "equal": bytes.Equal(left, right), "head": head, "tail": tail,
		"a_len": len(left), "b_len": len(right), "a": cut(left), "b": cut(right),
	}, nil
}

// frameData returns the payload of the frame at an address, after decompression.
func frameData(ctx context.Context, f *file, at query.Address) ([]byte, error) {
	d, err := f.document(ctx, at.Exchange, at.Part)
	if err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	i, err := d.position(at.Dir, at.Frame)
	if err != nil {
		return nil, err
	}
	return d.at.Frames[i].Data, nil
}

package ui

import (
	"context"

	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// readingEndpoints returns the API endpoints about the types by which fields are read.
func readingEndpoints() []endpoint {
	return []endpoint{
		{path: "explain", answer: answerExplanation},
		{path: "readings", answer: answerReadings},
		{path: "readings/choose", post: true, answer: chooseReading},
	}
}

// answerExplanation implements the endpoint explain. It returns the evidence for the type by which the
// field of a row is read.
func answerExplanation(ctx context.Context, q *request) (any, error) {
	row, err := q.number("row", 0)
	if err != nil {
		return nil, err
	}
	return withFrame(ctx, q, func(d *document, f *decode.Frame) (any, error) {
		o := d.outline(f)
		if row >= int64(len(o.Rows)) || o.Rows[row].Field == nil {
			return nil, notFound("row %d is not a field of a message", row)
		}
		layer := o.Rows[row].Layer
		tree, view, messages := f.Tree, d.view(f), d.views.Messages(f.Dir)
		if layer != 0 {
			// A message inside a field has no definition, and no evidence but its own.
			tree, view, messages = wire.Parse(o.Layers[layer].Data, wire.Options{}), decode.View{}, 1
		}
		path, err := fieldpath.ParseNumbers(o.Path(int32(row)))
		if err != nil {
			return nil, badRequest("%v", err)
		}
		list := query.Explain(tree, view, path, messages)
		out := make([]*contract.Explanation, len(list))
		for i := range list {
			list[i].Dir = f.Dir.String()
			out[i] = &list[i]
		}
		explained, err := lines(out)
		return map[string]any{"v": 1, "explanations": explained, "choosable": layer == 0, "types": append(kind.ChoiceTypes(), kind.Auto)}, err
	})
}

// answerReadings implements the endpoint readings. It returns the types that the user has chosen for
// fields of a capture.
func answerReadings(ctx context.Context, q *request) (any, error) {
	c, err := q.capture()
	if err != nil {
		return nil, err
	}
	list, err := c.Readings(ctx, "")
	if err != nil {
		return nil, err
	}
	out := make([]*contract.Reading, len(list))
	for i, r := range list {
		out[i] = &contract.Reading{Method: r.Method, Dir: r.Dir.String(), Path: r.Path, Type: r.Type}
	}
	readings, err := lines(out)
	return map[string]any{"v": 1, "readings": readings}, err
}

// chooseReading implements the endpoint readings/choose. It stores the type by which a field is read, as
// --as does.
func chooseReading(ctx context.Context, q *request) (any, error) {
	var asked struct {
		// Frame is the frame in which the field was seen, such as down/3; Path the field; Type the type, or auto.
		Frame string `json:"frame"`
		Path  string `json:"path"`
		Type  string `json:"type"`
	}
	if err := q.parse(&asked); err != nil {
		return nil, err
	}
	q.query.Set("f", asked.Frame)
	c, err := q.capture()
	if err != nil {
		return nil, err
	}
	return withFrame(ctx, q, func(d *document, fr *decode.Frame) (any, error) {
		// A type is chosen for a field of all messages, not for one element.
		path, err := fieldpath.ParseNumbers(asked.Path)
		if err != nil {
			return nil, badRequest("%v", err)
		}
		for i := range path {
			path[i].Index = fieldpath.All
		}
		choice, err := query.ParseChoice(fr.Dir.String() + ":" + path.String() + ":" + asked.Type)
		if err != nil {
			return nil, badRequest("%v", err)
		}
		reading, fits, err := d.views.Choose(choice, d.at.Exchange, []decode.Frame{*fr})
		if err != nil {
			return nil, badRequest("%v", err)
		}
		// The next request reads with what the capture remembers.
		d.last = -1
		if !fits {
			return nil, badRequest("the value of %s cannot be read as %s", asked.Path, asked.Type)
		}
		if err := c.PutReading(ctx, reading); err != nil {
			return nil, err
		}
		return map[string]any{"v": 1}, nil
	})
}

package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/known"
	"unwire/schema"
	"unwire/schema/protoform"
)

// formatText is the format of show and encode that needs no definitions.
const formatText = "text"

// checkFormat returns an error if --format is invalid, or cannot be combined with other flags.
func (f showFlags) checkFormat() error {
	if err := app.OneOf("--format", f.format, append([]string{formatText}, protoform.Formats()...)...); err != nil {
		return err
	}
	if f.format != formatText && (f.json || f.hex || f.follow || f.timeline || f.choices || f.explain != "") {
		return app.Usagef("--format %s can be combined only with --proto, --as and --parts", f.format)
	}
	return nil
}

// printByDefinitions executes 'unwire show --format': it prints the messages of frames as protojson or
// prototext. Several messages are separated by comments with the addresses of their frames (prototext),
// or printed on one line each (protojson).
func printByDefinitions(a *app.App, at conversation.Resolved, frames []decode.Frame, v *query.Views, o showFlags, addr query.Address) error {
	var missing error
	printed := 0
	for i := range frames {
		f := &frames[i]
		// A body without a protobuf tree can be printed only if it is JSON.
		isJSON := f.Tree == nil && at.Codec == "json"
		if f.End != nil || f.Tree == nil && !isJSON {
			continue
		}
		place := query.Address{File: addr.File, Exchange: at.ID, Part: addr.Part, Dir: f.Dir, Frame: f.Seq}
		md := v.Of(at.Call, f.Dir).Type
		if md == nil {
			missing = noTypeError(place)
			continue
		}
		p, err := protoform.Print(protoform.Format(o.format), f.Data, isJSON, md, v.Definition)
		if err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
		if err := writePrinted(a, p, place, len(frames) > 1, o.format); err != nil {
			return err
		}
		printed++
		if len(p.Lost) > 0 {
			fields, them := "field", "this field"
			if len(p.Lost) > 1 {
				fields, them = "fields", "these fields"
			}
			a.Say("unwire: %s: the output lacks the %s %s, because the definition of %s does not contain %s", term.Clean(place.String()), fields, strings.Join(p.Lost, ", "), md.FullName(), them)
		}
	}

	// Frames without a definition are an error only if nothing was printed.
	if printed == 0 && missing == nil {
		missing = app.Fail(app.ExitInput, fmt.Errorf("%s contains no message to print", addr), "leave out --format to print all data")
	}
	if printed > 0 && missing != nil {
		a.Say("unwire: %s", missing)
		return nil
	}
	return missing
}

// writePrinted prints one formatted message; place is the address of its frame. several means that other
// messages are printed, too, so that the message needs a separator.
func writePrinted(a *app.App, p *protoform.Printed, place query.Address, several bool, format string) error {
	data := p.Data
	switch {
	case several && format == string(protoform.JSON):
		var line bytes.Buffer
		if err := json.Compact(&line, data); err != nil {
			return err
		}
		line.WriteByte('\n')
		data = line.Bytes()
	case several:
		data = append([]byte("# "+term.Clean(place.String())+"\n"), data...)
	}
	if a.Out.TTY {
		data = []byte(term.CleanText(string(data)))
	}
	_, err := a.Out.Write(data)
	return err
}

// typeOfFrame returns the full name of the message type of a frame of a capture.
//
// Errors: the exchange cannot be read, or the definitions do not describe its messages.
func typeOfFrame(ctx context.Context, a *app.App, at query.Address, defs *schema.Schema) (string, error) {
	if at.Frame < 0 {
		return "", app.Usagef("--type %s: name a frame, such as %s/up/0", term.Clean(at.String()), term.Clean(at.String()))
	}
	capture, err := a.OpenCapture(at.File)
	if err != nil {
		return "", err
	}
	defer capture.Close()
	rec, err := capture.Exchange(ctx, at.Exchange)
	if err != nil {
		return "", err
	}
	var md protoreflect.MessageDescriptor
	if defs != nil {
		md = defs.FrameType(decode.Classify(rec), at.Dir)
	}
	if md == nil {
		return "", noTypeError(at)
	}
	return string(md.FullName()), nil
}

// noTypeError returns the error for a frame that the definitions do not describe.
func noTypeError(at query.Address) error {
	return app.Fail(app.ExitInput, fmt.Errorf("%s: the definitions do not describe the message type of this frame", at), "give definitions with --proto DIR; 'unwire schema infer' infers definitions from traffic")
}

// encodeByDefinitions encodes a message in protojson or prototext. Its type is the one that --type names,
// the one of the frame whose address --type is or, for prototext, the one that a comment in the text names.
func encodeByDefinitions(ctx context.Context, a *app.App, name string, f encodeFlags) error {
	text, err := a.ReadInput(name)
	if err != nil {
		return err
	}

	// Output of 'unwire show --format prototext' names its type in a comment.
	typeName := f.typeName
	if typeName == "" && f.format == string(protoform.Text) {
		typeName = protoform.TypeOf(text)
	}
	if typeName == "" {
		return app.Fail(app.ExitUsage, errors.New("the type of the message is unknown"), "name the type with --type package.Message, or a frame of this type with --type F.uwc#1/up/0")
	}

	// The capture of a frame may contain the definitions.
	var files []string
	frame := query.ParseAddress(typeName)
	if frame.Exchange != 0 {
		files = []string{frame.File}
	}
	defs, err := a.LoadDefinitions(ctx, f.proto, files...)
	if err != nil {
		return err
	}
	if frame.Exchange != 0 {
		if typeName, err = typeOfFrame(ctx, a, frame, defs); err != nil {
			return err
		}
	}

	// Types of the definitions take precedence over the well-known ones.
	find := func(name string) protoreflect.MessageDescriptor {
		if defs != nil {
			if md := defs.Message(name); md != nil {
				return md
			}
		}
		return known.Message(name)
	}
	md := find(typeName)
	if md == nil {
		return app.Fail(app.ExitUsage, fmt.Errorf("the definitions contain no message %s", term.Clean(typeName)), "give the full name, package.Message, and name the definitions with --proto DIR")
	}
	data, err := protoform.Parse(protoform.Format(f.format), text, md, find)
	if err != nil {
		return fmt.Errorf("%s: %w", app.InputName(name), err)
	}
	return f.write(a, data)
}

package inspect

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/schema"
)

// A namer names the paths of differences as definitions have them.
type namer struct {
	defs *schema.Schema
	call decode.Call                    // of an exchange
	root protoreflect.MessageDescriptor // of a message
}

// definitions loads what names come from; nil for none.
func (f DiffFlags) definitions(ctx context.Context) (*schema.Schema, error) {
	return app.LoadDefinitions(ctx, f.proto)
}

// root is the message type that --type names.
func (f DiffFlags) root(defs *schema.Schema) (protoreflect.MessageDescriptor, error) {
	if f.typ == "" {
		return nil, nil
	}
	if defs == nil || defs.Message(f.typ) == nil {
		return nil, app.Fail(app.ExitUsage, fmt.Errorf("no message %s in the definitions", f.typ), "'unwire schema find' searches them")
	}
	return defs.Message(f.typ), nil
}

// field is the field at a path of a difference, with the path in names; nil and
// "" where it is not known.
func (n namer) field(path string) (protoreflect.FieldDescriptor, string) {
	md := n.root
	if strings.HasPrefix(path, "@") {
		frame, rest, _ := strings.Cut(path, " ")
		dir := captures.Up
		if strings.HasPrefix(frame, "@"+captures.Down.String()) {
			dir = captures.Down
		}
		if path = rest; md == nil {
			md = app.FrameType(n.defs, n.call, dir)
		}
	}
	steps, err := fieldpath.ParseNumbers(path)
	if md == nil || err != nil || len(steps) == 0 {
		return nil, ""
	}
	var names []string
	var fd protoreflect.FieldDescriptor
	for _, step := range steps {
		number, ok := step.Number()
		if md == nil || !ok || number > uint64(protoreflect.FieldNumber(1<<29-1)) {
			return nil, ""
		}
		if fd = md.Fields().ByNumber(protoreflect.FieldNumber(number)); fd == nil {
			return nil, ""
		}
		name := string(fd.Name())
		if step.Index != fieldpath.All {
			name += "[" + strconv.Itoa(step.Index) + "]"
		}
		names = append(names, name)
		md = fd.Message()
	}
	return fd, strings.Join(names, ".")
}

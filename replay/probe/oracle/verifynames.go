package oracle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/replay/probe"
	"unwire/replay/probe/names"
	"unwire/schema/jsonname"
)

// nameNotAsked is the remark on a confirmed field whose name was not tested.
const nameNotAsked = "the field's name, which unwire did not test"

// verifyNames verifies the names and types of confirmed fields by the errors of the server's JSON
// parser, if VerifyOptions.AskNames is set. Otherwise it adds a remark that the names are unverified.
//
// JSON contains no field numbers, so an existing name may belong to another number.
func verifyNames(ctx context.Context, c *probe.Client, o *probe.VerifyOptions, d *probe.Definition, res *probe.Result) error {
	for _, e := range d.Fields {
		if e.Verdict == probe.Confirmed {
			e.Leave(nameNotAsked)
		}
	}
	es := res.Runtime == probe.ES1 || res.Runtime == probe.ES2
	switch {
	case !o.AskNames:
		return nil
	case res.Runtime == probe.GRPCGo:
		res.Note("names were not tested: grpc-go does not accept JSON")
		return nil
	case es && len(o.Known) == 0 && !o.AllowExecute:
		res.Note("names were not tested. To test them without executing the method, unwire needs one name that exists: give it with --known")
		return nil
	}

	// Only the declared names are asked for; the server's answers go to a result of their own.
	asked := o.Options
	asked.Names, asked.Values, asked.Types = declaredNames(d), nil, nil
	told := &probe.Result{Runtime: res.Runtime, RequestType: res.RequestType, Complete: map[string]bool{}}
	err := names.Ask(ctx, c, &asked, told)
	for _, n := range told.Notes {
		res.Note(n)
	}
	judgeNames(d, told, err == nil && len(told.Notes) == 0)
	return err
}

// declaredNames returns all field names in the definition, both as declared and in JSON's spelling.
func declaredNames(d *probe.Definition) (list []string) {
	for _, e := range d.Fields {
		for _, name := range []string{e.Name, e.Descriptor.JSONName()} {
			if !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	return list
}

// judgeNames sets the verdicts about names. told has the names that the server accepts; complete means
// that all defined names were tested.
func judgeNames(d *probe.Definition, told *probe.Result, complete bool) {
	for _, m := range d.Messages {
		fields := namesOf(m, told)
		for _, e := range m.Fields {
			if e.Verdict != probe.Confirmed {
				continue
			}
			f := fieldNamed(fields, e)
			switch {
			case f != nil:
				judgeName(e, f)
			// Where one name was found all were asked. A Value takes anything.
			case complete && len(fields) > 0 && !takesAnything(e):
				e.Decide(probe.Contradicted, "the server parses the field as declared, but has no field named %s", e.Name)
			}
		}
	}
}

// judgeName compares f, the server's field with the declared name, with the declaration e.
func judgeName(e *probe.Expectation, f *probe.Field) {
	e.Said = append(e.Said, f.Evidence...)
	if e.Descriptor.IsMap() && (f.MapValue != "" || f.MapFamily != "") {
		judgeMap(e, f)
		return
	}
	declared := e.Type
	if e.Descriptor.IsMap() || f.Type == "" || !strings.Contains(f.Type, ".") && f.Type != "bool" && f.Type != "string" {
		e.Settle(nameNotAsked, "whether the field with this name has this number")
		return
	}
	if f.Type != declared {
		e.Decide(probe.Contradicted, "the server's field %s is of type %s, not %s", e.Name, f.Type, declared)
		return
	}
	e.Settle(nameNotAsked, "")
	e.Concluded += fmt.Sprintf("; its field %s is of this type", e.Name)
}

// judgeMap compares the type of a map's values, as the server revealed it in f, with the declaration e.
func judgeMap(e *probe.Expectation, f *probe.Field) {
	declared, family, told := valueType(e.Descriptor.MapValue()), "", f.MapValue
	switch {
	case told == "":
		declared, family, told = familyOf(declared), " or a type like it", f.MapFamily
	case told == "enum" && e.Descriptor.MapValue().Enum() != nil:
		declared = told
	}
	if told != declared {
		e.Decide(probe.Contradicted, "the server's map %s has values of type %s%s, not %s", e.Name, told, family, valueType(e.Descriptor.MapValue()))
		return
	}
	e.Settle(nameNotAsked, "")
	e.Settle("whether it is a map, and the types of its keys and values", "the type of its keys")
	e.Concluded += fmt.Sprintf("; its field %s is a map with values of type %s%s", e.Name, told, family)
}

// valueType returns the type of a declared field: a scalar type or a full name.
func valueType(fd protoreflect.FieldDescriptor) string {
	switch {
	case fd.Message() != nil:
		return string(fd.Message().FullName())
	case fd.Enum() != nil:
		return string(fd.Enum().FullName())
	}
	return fd.Kind().String()
}

// familyOf returns the type that represents all types that a JSON parser does not distinguish from typ.
func familyOf(typ string) string {
	switch typ {
	case "sint32", "sfixed32":
		return "int32"
	case "sint64", "sfixed64":
		return "int64"
	case "fixed32":
		return "uint32"
	case "fixed64":
		return "uint64"
	}
	if wrapped, ok := strings.CutPrefix(typ, "google.protobuf."); ok && strings.HasSuffix(wrapped, "Value") {
		return strings.ToLower(strings.TrimSuffix(strings.Replace(wrapped, "UInt", "uint", 1), "Value"))
	}
	return typ
}

// takesAnything reports whether fields of the declared type accept any JSON value, such as
// google.protobuf.Value.
func takesAnything(e *probe.Expectation) bool {
	return e.Descriptor.Message() != nil && strings.HasPrefix(string(e.Descriptor.Message().FullName()), "google.protobuf.")
}

// namesOf returns the fields of the message m whose names the server accepted.
func namesOf(m *probe.ExpectedMessage, told *probe.Result) (list []probe.Field) {
	if m.Above == nil {
		return told.Fields
	}
	path := pathOf(m)
	full := string(m.Above.Descriptor.Message().FullName())
	for _, f := range told.Nested {
		if f.Message == full || f.Message == "" && plain(f.In) == plain(path) {
			list = append(list, f)
		}
	}
	return list
}

// pathOf returns the field names that lead to a nested message.
func pathOf(m *probe.ExpectedMessage) string {
	var names []string
	for ; m.Above != nil; m = m.Above.In {
		names = append([]string{m.Above.Name}, names...)
	}
	return strings.Join(names, ".")
}

// fieldNamed returns the field with the declared name of e; nil if there is none.
func fieldNamed(fields []probe.Field, e *probe.Expectation) *probe.Field {
	for i := range fields {
		f := &fields[i]
		if f.Name == e.Name || f.Name == e.Descriptor.JSONName() || jsonname.Of(f.Name) == e.Descriptor.JSONName() {
			return f
		}
	}
	return nil
}

// plain normalises a name, so that spellings such as page_size and pageSize become equal.
func plain(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }

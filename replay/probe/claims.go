package probe

import (
	"fmt"
	"slices"
)

// judge sets the verdict of each claim in the questions from the fields that were found.
func (r *Result) judge(list []Question) {
	for _, q := range list {
		i := slices.IndexFunc(r.Fields, func(f Field) bool { return f.Path == q.Path && f.Number == q.Number })
		for k := range q.Claims {
			c := &q.Claims[k]
			if i >= 0 {
				r.Fields[i].judge(c)
			} else {
				r.judgeAbsent(q.Path, c)
			}
		}
		demote(q.Claims)
		r.Settled = append(r.Settled, q)
	}
}

// decide sets the verdict of the claim and its reason, formatted as by fmt.Sprintf.
func (c *Claim) decide(v Verdict, format string, args ...any) {
	c.Verdict, c.Concluded = v, fmt.Sprintf(format, args...)
}

// demote resolves confirmed claims that exclude each other: at most one of them stays confirmed, and
// only if it fits better than the others.
func demote(claims []Claim) {
	for i := range claims {
		c := &claims[i]
		if c.Verdict != Confirmed {
			continue
		}
		for k := range claims {
			if other := &claims[k]; other.Verdict != Contradicted && c.excludes(other) {
				c.decide(Undecided, "%s; this fits another possible type, too", c.Concluded)
				if c.Open != "" {
					c.Concluded += "; the server does not reveal " + c.Open
				}
				c.Open = ""
				break
			}
		}
	}
}

// A shape is how a claim expects a field to be decoded. Members that are "" expect nothing.
type shape struct {
	// class is the expected class.
	class Class

	// kind is the expected kind, and label the expected label.
	kind, label string
}

// shape returns the expectation that follows from the claimed kind and label.
func (c *Claim) shape() shape {
	switch c.Kind {
	case "string", "bytes":
		return shape{Len, c.Kind, c.Label}
	// a packed list may have numbers of any class
	case "packed":
		return shape{"", "", "repeated"}
	case "group", "message":
		return shape{Message, c.Kind, c.Label}
	}
	return shape{Class(c.Kind), "", c.Label}
}

// excludes reports whether c and d, two claims about one field, cannot both be true.
func (c *Claim) excludes(d *Claim) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	if c.Kind == noKind || d.Kind == noKind {
		return c.Kind != d.Kind
	}
	a, b := c.shape(), d.shape()
	return differ(string(a.class), string(b.class)) || differ(a.kind, b.kind) || differ(a.label, b.label) || differ(c.Type, d.Type) ||
		c.Kind == "packed" && (b.class == Len || b.class == Message) || d.Kind == "packed" && (a.class == Len || a.class == Message)
}

// judgeAbsent sets the verdict of the claim c about a field number in the message at path, where no
// field was found.
func (r *Result) judgeAbsent(path string, c *Claim) {
	switch {
	case r.Complete[path] && c.Kind == noKind:
		c.decide(Confirmed, "the server ignores the field number: its request type has no such field")
	case r.Complete[path]:
		c.decide(Contradicted, "the server ignores the field number: its request type has no such field")
	case r.Shown[path] && c.shows():
		c.decide(Contradicted, "the server parses the field neither as a message nor as repeated numbers")
	case r.Shown[path]:
		c.decide(Undecided, "the field does not exist, or is bytes, a number that is not repeated, or a string without UTF-8 check: protobuf-go reports no parse errors for such fields")
	case r.Stopped != "":
		c.decide(Undecided, "the probe ended before it had tested the field: %s", r.Stopped)
	case r.Runtime == Unknown:
		c.decide(Undecided, "the server's answers do not reveal how its parser reads the field")
	default:
		c.decide(Undecided, "the server's answers reveal nothing about the field; the notes have the reason")
	}
}

// shows reports whether a probe of a Go server would have found the claimed field. The result is false
// for text, because text fields are not always probed.
func (c *Claim) shows() bool {
	switch c.Kind {
	case "message", "packed":
		return true
	case "varint", "fixed32", "fixed64":
		return c.Label == "repeated"
	}
	return false
}

// judge sets the verdict of the claim c about this field, which was found.
func (f *Field) judge(c *Claim) {
	c.Open = ""
	want, is := c.shape(), "the server parses the field as "+f.describe()
	switch {
	case c.Kind == noKind, f.refutes(want), c.Kind == "packed" && (f.Class == Len || f.Class == Message),
		c.Type != "" && f.Type != "" && c.Type != f.Type:
		c.decide(Contradicted, "%s", is)
	case f.Class == "", c.Kind == "packed" && f.Label == "":
		c.decide(Undecided, "%s", is)
	case want.kind != "" && f.Kind == "":
		c.decide(Undecided, "%s, and does not reveal the exact type", is)
	case c.Type != "" && f.Type == "":
		c.decide(Undecided, "%s, and does not reveal the message type", is)
	default:
		c.decide(Confirmed, "%s", is)
		if want.label != "" && f.Label == "" {
			c.Open = f.openLabel()
		}
	}
}

// refutes reports whether the field, as it was found, cannot have the shape want.
func (f *Field) refutes(want shape) bool {
	switch {
	// a single varint, or a message with any label
	case f.VarintOrMessage:
		return want.class != "" && want.class != Varint && want.class != Message || want.label == "repeated" && want.class != Message
	case want.label == "map" && f.NoMap:
		return true
	case want.class != "" && f.Class != "" && want.class != f.Class,
		want.kind != "" && f.Kind != "" && want.kind != f.Kind,
		want.label != "" && f.Label != "" && want.label != f.Label:
		return true
	}
	return false
}

// openLabel describes what the probe could not determine about the label of the field.
func (f *Field) openLabel() string {
	if f.Class == Message && !f.NoMap {
		return "whether the field is repeated, or a map"
	}
	return "whether the field is repeated"
}

// describe describes, as far as known, how the server parses the field.
func (f *Field) describe() string {
	sizes := map[Class]string{Varint: "varint", Fixed32: "number of 4 bytes", Fixed64: "number of 8 bytes"}
	// From the least to the most specific knowledge about the field.
	switch {
	case f.VarintOrMessage:
		return "a single varint, or as a message with fields of the same types as those of the message around it"
	case f.Class == "" && f.Label == "repeated":
		return "repeated numbers"
	case f.Class == "":
		return "a field whose wire type it does not reveal"
	case f.Kind == "group":
		return "a group"
	case f.Label == "map":
		return "a map"
	case f.Class == Message:
		return "a message"
	case f.Kind == "string":
		return "string"
	case f.Kind == "bytes":
		return "bytes"
	case f.Class == Len:
		return "string or bytes"
	case f.Label == "repeated":
		return "a repeated " + sizes[f.Class]
	case f.Label == "":
		return "a single or repeated " + sizes[f.Class]
	}
	return "a single " + sizes[f.Class]
}

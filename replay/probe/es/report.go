package es

import (
	"context"
	"fmt"
	"strings"

	"unwire/replay/probe"
)

// refine distinguishes strings from bytes, with one request for each field.
func (m *message) refine(ctx context.Context) error {
	strict := false
	for _, n := range m.order() {
		f := m.found[n]
		if f.slot != slotLen || f.group {
			continue
		}
		a, err := m.server.Ask(ctx, fmt.Sprintf("%s: is %d text", m.at(), n), m.whole(appendEnd(probe.AppendBadText(nil, n), 0)))
		if err != nil {
			return err
		}
		switch g := readCanary(a.Text); {
		case a.FromParser && !g.canary && refusesText(a.Text):
			f.text, strict = "string", true
			f.evidence = append(f.evidence, fmt.Sprintf("unwire's request %d: the server rejects invalid UTF-8 in the field: %s", m.server.Requests, a.Quoted()))
		case g.canary && g.slot == slotEnd:
			f.text = "bytes"
			f.evidence = append(f.evidence, fmt.Sprintf("unwire's request %d: the server accepts invalid UTF-8 in the field", m.server.Requests))
		}
	}
	// a parser that does not validate UTF-8 decides nothing
	if !strict {
		for _, f := range m.found {
			if f.text == "bytes" {
				f.text, f.evidence = "", f.evidence[:len(f.evidence)-1]
			}
		}
	}
	return nil
}

// refusesText reports whether an error message rejects invalid UTF-8 in a string.
func refusesText(message string) bool {
	return strings.Contains(message, "not valid for encoding") || strings.Contains(strings.ToLower(message), "utf-8")
}

// at describes the message for the journal, such as "message at 1.2".
func (m *message) at() string {
	if len(m.path) == 0 {
		return "request"
	}
	return "message at " + probe.PathText(m.path)
}

// report adds the found fields to the result.
func (m *message) report(res *probe.Result) {
	for _, n := range m.order() {
		f := m.found[n]
		out := probe.Field{Path: probe.PathText(m.path), Number: n, Evidence: f.evidence}
		// The slot of the canary gives the class; the capture decides where the parser could not.
		switch {
		case f.group:
			out.Class, out.Kind = probe.Message, "group"
		case f.slot == slotFixed32:
			out.Class, out.Kind, out.Label = probe.Fixed32, "fixed32", f.label
		case f.slot == slotFixed64:
			out.Class, out.Kind, out.Label = probe.Fixed64, "fixed64", f.label
		case f.slot == slotLen:
			out.Class, out.Kind = probe.Len, f.text
		case f.slot == slotMap:
			out.Class, out.Kind, out.Label = probe.Message, "message", "map"
		case f.slot == slotMessage:
			out.Class, out.Kind, out.Label = probe.Message, "message", f.label
			out.NoMap = f.label == "" && (f.below || m.server.showsMaps)
		case f.slot == slotPacked:
			out.Class, out.Kind, out.Label = probe.Varint, "varint", "repeated"
		case m.hints[n].Varint:
			out.Class, out.Kind, out.Label = probe.Varint, "varint", "singular"
			out.Evidence = append(out.Evidence, "the field is a varint in the capture")
		case m.hints[n].Len:
			out.Class, out.Kind = probe.Message, "message"
			out.Evidence = append(out.Evidence, "the field is length-delimited in the capture")
		case f.level, m.distinct(n) && !f.unsure:
			out.Class, out.Kind, out.Label = probe.Varint, "varint", "singular"
		default:
			out.VarintOrMessage = true
			out.Evidence = append(out.Evidence, "the field is a varint, or a message with fields of the same types as those of the message around it; a capture that contains the field would decide")
		}
		res.Fields = append(res.Fields, out)

		// Numbers that could not be classified are reported, so that nobody takes them for missing.
	}
	for _, n := range m.unknown {
		res.Note(fmt.Sprintf("%s: field %d exists, but its type is unknown, because the parser's error names no position", m.at(), n))
	}
	res.Complete[probe.PathText(m.path)] = m.complete && len(m.unknown) == 0
	if !m.complete {
		res.Note(fmt.Sprintf("%s: not all field numbers were probed", m.at()))
	}
}

// distinct reports whether the message has so many fields that another type is unlikely to read the
// same numbers in the same way; field n is not counted.
func (m *message) distinct(n int32) bool {
	if !m.complete {
		return false
	}
	weight := 0
	for k, f := range m.found {
		switch {
		case k == n || f.group || f.slot == slotMap:
		case f.slot == slotVarint:
			weight++
		default:
			weight += 2
		}
	}
	return weight >= enoughWeight || n > finalAbsent && m.numbers.Count() > finalAbsent
}

// enoughWeight is the sum of weights of surrounding fields that distinct requires, such as that of a
// string and another varint.
const enoughWeight = 3

package inspect

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/fieldpath"
	"unwire/decode/kind"
	"unwire/decode/wire"
)

// An explanation is why a field is read as it is, as JSON has it.
type explanation struct {
	V    int    `json:"v"`
	Path string `json:"path"`
	Dir  string `json:"dir,omitempty"`
	Off  int    `json:"off"`
	// that the evidence was drawn from
	Messages int `json:"messages"`
	// messages that have the field, within the enclosing ones
	Seen     int64              `json:"seen"`
	Occurs   int64              `json:"occurs"`
	Most     int64              `json:"most"` // in one message
	Declared string             `json:"declared,omitempty"`
	Chosen   bool               `json:"chosen,omitempty"`
	Type     string             `json:"type,omitempty"` // that was chosen
	Error    string             `json:"error,omitempty"`
	Readings []explainedReading `json:"readings"`
	Settle   string             `json:"settle,omitempty"`
	Form     string             `json:"form,omitempty"`
	Shape    string             `json:"shape,omitempty"`
	Note     string             `json:"note,omitempty"`
}

type explainedReading struct {
	Kind string         `json:"kind"`
	Type string         `json:"type"`
	P    float64        `json:"p"`
	Why  []kind.Feature `json:"why"`
}

// explain finds out why the fields of t at a path are read as they are; messages is
// how many the view's evidence was drawn from.
func explain(t *wire.Tree, v decode.View, path fieldpath.Path, messages int) []explanation {
	// with what was chosen, and without
	r, evidence := v.Reader(t), v.Evidence.NewReader(t)
	var out []explanation
	done := map[*kind.Field]bool{}
	for _, i := range t.Find(path) {
		f := r.Field(i)
		if i == 0 || f == nil || done[f] && f.Occurs > 1 {
			continue // the evidence of one field is that of all its values
		}
		done[f] = true
		if v.Evidence == nil {
			messages = 1
		}
		e := explanation{
			V: 1, Path: t.PathOf(i).String(), Off: t.Node(i).Off, Messages: messages,
			Seen: f.Seen, Occurs: f.Occurs, Most: f.Most,
		}
		if fd := declarationAt(v.Type, t.FieldPath(i)); fd != nil {
			e.Declared = string(fd.FullName()) + ": " + fd.Kind().String()
			if m := fd.Message(); m != nil {
				e.Declared = string(fd.FullName()) + ": " + string(m.FullName())
			}
		}
		var unfit error
		if e.Chosen, unfit = r.Chosen(i); unfit != nil {
			e.Error = unfit.Error()
		}
		list := evidence.Readings(i)
		for _, g := range list {
			why := g.Why
			if why == nil {
				why = []kind.Feature{}
			}
			e.Readings = append(e.Readings, explainedReading{string(g.Kind), g.Type, math.Round(g.P*1e4) / 1e4, why})
		}
		e.Settle = kind.Settle(f, list)
		is, typ, _ := r.Best(i)
		if e.Chosen {
			e.Type = typ
		}
		m := r.Remark(i, is, typ)
		e.Form, e.Shape, e.Note = m.Form, m.Shape, m.Note
		out = append(out, e)
	}
	return out
}

// declarationAt is the field that md declares at a path, or nil.
func declarationAt(md protoreflect.MessageDescriptor, path fieldpath.Path) protoreflect.FieldDescriptor {
	var fd protoreflect.FieldDescriptor
	for _, s := range path {
		number, ok := s.Number()
		if md == nil || !ok || number > uint64(protowire.MaxValidNumber) {
			return nil
		}
		if fd = md.Fields().ByNumber(protowire.Number(number)); fd == nil {
			return nil
		}
		md = fd.Message()
	}
	return fd
}

// printExplanations writes explanations for people, or as JSON Lines.
func printExplanations(a *app.App, to io.Writer, list []explanation, of string, asJSON bool) error {
	w := bufio.NewWriter(to)
	for i := range list {
		e := &list[i]
		if asJSON {
			if err := app.NewLineEncoder(w).Encode(e); err != nil {
				return err
			}
			continue
		}
		head := e.Path
		if of != "" {
			head += " of " + of
		}
		fmt.Fprintf(w, "%s  %s\n", a.Out.Bold(term.Clean(head)), a.Out.Dim(fmt.Sprintf("at %#x, in %s", e.Off, seenWords(e))))
		if e.Declared != "" {
			fmt.Fprintf(w, "  declared as %s\n", e.Declared)
		}
		if e.Error != "" {
			fmt.Fprintf(w, "  %s\n", a.Out.Red("! "+term.Clean(e.Error)))
		}
		if e.Chosen {
			fmt.Fprintf(w, "  %s as chosen; the evidence says:\n", e.Type)
		}
		for _, r := range e.Readings {
			fmt.Fprintf(w, "  %-15s %.3f\n", r.Type, r.P)
			for _, f := range r.Why {
				fmt.Fprintf(w, "      %+9.2f  %s\n", f.Weight, f.Name)
			}
		}
		if about := strings.TrimSpace(e.Form + e.Shape); about != "" || e.Note != "" {
			fmt.Fprintf(w, "  looks like: %s\n", term.Clean(strings.TrimSpace(about+" "+e.Note)))
		}
		if e.Settle != "" {
			fmt.Fprintf(w, "  would settle it: %s\n", e.Settle)
		}
	}
	return w.Flush()
}

func seenWords(e *explanation) string {
	s := fmt.Sprintf("%s of the field", app.Counted(e.Occurs, "value"))
	if e.Most > 1 {
		s += fmt.Sprintf(", up to %d in one message", e.Most)
	}
	return s + ", from " + app.Counted(e.Messages, "message")
}

package schemacmd

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/captures/redact"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/field"
	"unwire/decode/secret"
	"unwire/proto"
	"unwire/schema"
	"unwire/schema/check"
)

//go:embed checkpage.html
var checkPage string

// Bounds of a page: findings with excerpts, excerpts of each, fields shown in
// one, and bytes of a field.
const (
	maxShownFindings = 500
	maxExcerpts      = 2
	maxExcerptFields = 4
	maxExcerptBytes  = 64
	maxExcerptText   = 240
)

// A pageFinding is a finding as the page shows it.
type pageFinding struct {
	Kind, Message, Field, What string
	Seen                       int
	Allowed                    bool
	Excerpts                   []*excerpt
	More                       []string // addresses without an excerpt
	number                     int32
	name                       string
}

// An excerpt is the part of a frame that shows a finding.
type excerpt struct {
	Address string
	Text    string // the tree, or the JSON around it
	Hex     string
	of      *pageFinding
}

type checkPageData struct {
	Clean    bool
	New      string
	Summary  string
	Inputs   []string
	Findings []*pageFinding
	Report   *check.Report
	Methods  [][]string
	Messages [][]string
}

// writeCheckPage writes a report as one page for people.
func writeCheckPage(ctx context.Context, a *app.App, name string, defs *schema.Schema, r *check.Report, inputs []string) error {
	page, err := template.New("check").Parse(checkPage)
	if err != nil {
		return err
	}
	data := checkPageData{
		Clean: r.Clean(), Summary: ReportSummary(r), Inputs: inputs, Report: r, Findings: pageFindings(r),
		Methods: methodRows(r), Messages: typeRows(r),
	}
	data.New = app.Counted(len(data.Findings)-r.AllowedFindings(), "new finding") + "."
	if err := fillExcerpts(ctx, defs, data.Findings); err != nil {
		return err
	}
	if name == "-" {
		return page.Execute(a.Out, data)
	}
	return app.WholeFile(name, app.ForOwner, func(w io.Writer) error { return page.Execute(w, data) })
}

func pageFindings(r *check.Report) []*pageFinding {
	list := []*pageFinding{}
	add := func(f pageFinding, frames []string) {
		shown := 0
		if len(list) < maxShownFindings {
			shown = min(maxExcerpts, len(frames))
		}
		p := &f
		for _, at := range frames[:shown] {
			p.Excerpts = append(p.Excerpts, &excerpt{Address: at, of: p})
		}
		p.More = frames[shown:]
		list = append(list, p)
	}
	for _, u := range r.Unknown {
		add(pageFinding{
			Kind: "unknown", Message: u.Message, Field: fieldLabel(u.Number, u.Name), What: fmt.Sprintf("%s (p %.2f)", u.Kind, u.P),
			Seen: u.Seen, Allowed: u.Allowed, number: u.Number, name: u.Name,
		}, u.Frames)
	}
	for _, c := range r.Contradicted {
		add(pageFinding{
			Kind: "contradicted", Message: c.Message, Field: fieldLabel(c.Number, c.Name), What: c.Reason,
			Seen: c.Seen, Allowed: c.Allowed, number: c.Number, name: c.Name,
		}, c.Frames)
	}
	for _, m := range r.UnknownMethods {
		add(pageFinding{Kind: "unknown method", Message: m.Service, Field: m.RPC, Seen: m.Count, Allowed: m.Allowed}, m.Frames)
	}
	return list
}

// fillExcerpts reads the frames that excerpts are of, without their secrets.
func fillExcerpts(ctx context.Context, defs *schema.Schema, findings []*pageFinding) error {
	byFile := map[string][]*excerpt{}
	for _, f := range findings {
		for _, e := range f.Excerpts {
			file := app.ParseAddress(e.Address).File
			byFile[file] = append(byFile[file], e)
		}
	}
	for file, list := range byFile {
		if err := fillFromFile(ctx, defs, file, list); err != nil {
			return err
		}
	}
	return nil
}

func fillFromFile(ctx context.Context, defs *schema.Schema, file string, list []*excerpt) error {
	store, err := app.OpenCapture(file)
	if err != nil {
		return err
	}
	defer store.Close()
	rules, err := app.ExportRules(ctx, defs)
	if err != nil {
		return err
	}
	view, err := secret.NewView(ctx, store, redact.Default(proto.Profile()).Omitting(), rules)
	if err != nil {
		return err
	}
	joined, err := conversation.FindAll(ctx, view)
	if err != nil {
		return err
	}
	slices.SortStableFunc(list, func(a, b *excerpt) int {
		x, y := app.ParseAddress(a.Address), app.ParseAddress(b.Address)
		return cmp.Or(cmp.Compare(x.Exchange, y.Exchange), cmp.Compare(strconv.FormatBool(x.Part), strconv.FormatBool(y.Part)))
	})
	var ex *decode.Exchange
	last := app.Address{}
	for _, e := range list {
		at := app.ParseAddress(e.Address)
		if ex == nil || at.Exchange != last.Exchange || at.Part != last.Part {
			if ex, err = excerptExchange(ctx, view, joined, at); err != nil {
				return err
			}
			last = at
		}
		if f := ex.Frame(at.Dir, at.Frame); f != nil {
			e.fill(defs, ex, f)
		}
	}
	return nil
}

func excerptExchange(ctx context.Context, view *secret.View, joined *conversation.Set, at app.Address) (*decode.Exchange, error) {
	if !at.Part && joined.Head(at.Exchange) == at.Exchange {
		c, err := joined.Decode(ctx, view, at.Exchange, decode.Options{})
		if err != nil {
			return nil, err
		}
		return c.Exchange, nil
	}
	return decode.Decode(ctx, view, at.Exchange, decode.Options{})
}

// fill makes the excerpt of a frame.
func (e *excerpt) fill(defs *schema.Schema, ex *decode.Exchange, f *decode.Frame) {
	if f.Tree == nil || f.End != nil {
		e.Text = textAround(f.Data, e.of.name)
		return
	}
	var root string
	var md protoreflect.MessageDescriptor
	if md = defs.FrameType(ex.Call, f.Dir); md != nil {
		root = string(md.FullName())
	}
	fields := decode.View{Type: md}.Fields(f.Tree)
	left := maxExcerptFields
	shown := onlyFinding(fields, root, e.of, &left)
	if len(shown) == 0 {
		shown = fields[:min(len(fields), maxExcerptFields)]
	}
	var b strings.Builder
	if render.Fields(&b, shown, "") == nil {
		e.Text = term.CleanText(b.String())
	}
	deepest := shown
	for len(deepest) == 1 && len(deepest[0].Fields) > 0 && deepest[0].N != uint64(e.of.number) {
		deepest = deepest[0].Fields
	}
	if len(deepest) > 0 {
		d := deepest[0]
		end := min(d.Off+d.Len, d.Off+maxExcerptBytes, len(f.Data))
		if d.Off < end {
			e.Hex = hex.Dump(f.Data[d.Off:end])
		}
	}
}

// onlyFinding keeps the fields that a finding is about, and what encloses them.
func onlyFinding(fields []*field.Field, typ string, of *pageFinding, left *int) []*field.Field {
	var kept []*field.Field
	for _, original := range fields {
		if *left == 0 {
			break
		}
		f := *original
		if typ == of.Message && (f.N == uint64(of.number) || of.number == 0 && f.Error != "") {
			*left--
			if len(f.Fields) > maxExcerptFields {
				f.Fields = f.Fields[:maxExcerptFields]
			}
			kept = append(kept, &f)
			continue
		}
		if below := onlyFinding(f.Fields, f.Type, of, left); len(below) > 0 {
			f.Fields = below
			kept = append(kept, &f)
		}
	}
	return kept
}

// textAround is the part of a JSON message with a member, or its beginning.
func textAround(data []byte, member string) string {
	at := 0
	if member != "" {
		at = max(0, strings.Index(string(data), strconv.Quote(member)))
	}
	from := max(0, at-maxExcerptText/3)
	for from > 0 && !utf8.RuneStart(data[from]) {
		from--
	}
	to := min(len(data), from+maxExcerptText)
	for to < len(data) && to > from && !utf8.RuneStart(data[to]) {
		to--
	}
	return term.CleanText(strings.ToValidUTF8(string(data[from:to]), "\ufffd"))
}

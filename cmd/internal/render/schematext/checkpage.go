package schematext

import (
	"context"
	_ "embed"
	"encoding/hex"
	"html/template"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/field"
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

// A CheckPage is a report as a page of HTML, in which each finding has excerpts of the
// frames that show it.
type CheckPage struct{ data checkPageData }

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

// A pageFinding is a finding in the form in which the HTML page shows it.
type pageFinding struct {
	Kind, Message, Field, What string
	Seen                       int
	Allowed                    bool
	Excerpts                   []*excerpt

	// More are the addresses of frames without an excerpt.
	More []string

	number int32
	name   string
}

// An excerpt is the part of a frame that shows a finding.
type excerpt struct {
	Address string

	// Text is the finding's fields within their parent messages or, for JSON, the text around the
	// member.
	Text string
	Hex  string

	finding *pageFinding
}

// A frameReader calls do with the frames of addresses, in any order. What it reads must
// have no secrets.
type frameReader func(ctx context.Context, addresses []string, do func(address string, ex *decode.Exchange, f *decode.Frame)) error

// NewCheckPage makes the page of a report on captures against definitions.
func NewCheckPage(ctx context.Context, r *check.Report, inputs []string, defs *schema.Schema, read frameReader) (*CheckPage, error) {
	p := checkPageData{
		Clean: r.Clean(), Summary: CheckSummary(r), Inputs: inputs, Report: r, Findings: pageFindings(r),
		Methods: methodRows(r), Messages: typeRows(r),
	}
	p.New = app.Counted(len(p.Findings)-r.AllowedFindings(), "new finding") + "."

	// Several findings can be in one frame, which is read once.
	excerpts := map[string][]*excerpt{}
	var addresses []string
	for _, f := range p.Findings {
		for _, e := range f.Excerpts {
			if excerpts[e.Address] == nil {
				addresses = append(addresses, e.Address)
			}
			excerpts[e.Address] = append(excerpts[e.Address], e)
		}
	}
	err := read(ctx, addresses, func(address string, ex *decode.Exchange, f *decode.Frame) {
		for _, e := range excerpts[address] {
			e.fill(defs, ex, f)
		}
	})
	return &CheckPage{p}, err
}

// Write writes the findings as an HTML page.
func (p *CheckPage) Write(w io.Writer) error {
	page, err := template.New("check").Parse(checkPage)
	if err != nil {
		return err
	}
	return page.Execute(w, p.data)
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
			p.Excerpts = append(p.Excerpts, &excerpt{Address: at, finding: p})
		}
		p.More = frames[shown:]
		list = append(list, p)
	}
	// Unknown fields first, then contradictions, then unknown methods.
	for _, u := range r.Unknown {
		add(pageFinding{
			Kind: "unknown", Message: u.Message, Field: fieldLabel(u.Number, u.Name), What: kindWithP(&u),
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

// fill decodes the part of a frame that the page shows for a finding.
func (e *excerpt) fill(defs *schema.Schema, ex *decode.Exchange, f *decode.Frame) {
	if f.Tree == nil || f.End != nil {
		e.Text = textAround(f.Data, e.finding.name)
		return
	}
	var root string
	var md protoreflect.MessageDescriptor
	if md = defs.FrameType(ex.Call, f.Dir); md != nil {
		root = string(md.FullName())
	}
	fields := decode.View{Type: md}.Fields(f.Tree)

	// Show the fields around the finding; if it is not in the tree, the first fields.
	left := maxExcerptFields
	shown := onlyFinding(fields, root, e.finding, &left)
	if len(shown) == 0 {
		shown = fields[:min(len(fields), maxExcerptFields)]
	}
	var b strings.Builder
	if render.Fields(&b, shown, "") == nil {
		e.Text = term.CleanText(b.String())
	}

	// The hex dump shows the innermost field that contains the finding.
	deepest := shown
	for len(deepest) == 1 && len(deepest[0].Fields) > 0 && deepest[0].N != uint64(e.finding.number) {
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

// onlyFinding returns the fields that a finding is about, with their parents only.
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

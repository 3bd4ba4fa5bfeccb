package schematext

import (
	"context"
	_ "embed"
	"encoding/hex"
	"html/template"
	"io"
	"slices"
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

// Limits of the HTML page: findings with excerpts, excerpts of each finding, fields and bytes in an
// excerpt, and bytes of JSON text.
const (
	maxShownFindings = 500
	maxExcerpts      = 2
	maxExcerptFields = 4
	maxExcerptBytes  = 64
	maxExcerptText   = 240
)

// A CheckPage is the report of 'unwire schema check' as an HTML page, with excerpts of the frames that
// show each finding.
type CheckPage struct {
	// data is what the template of the page gets.
	data checkPageData
}

// checkPageData is what the page's template gets.
type checkPageData struct {
	// Clean means that there are no findings, except accepted ones.
	Clean bool

	// New says how many findings are new.
	New string

	// Summary is the summary line.
	Summary string

	// Inputs are the checked captures.
	Inputs []string

	// Findings are the findings.
	Findings []*pageFinding

	// Report is the whole report.
	Report *check.Report

	// Methods are the rows of the table of methods.
	Methods [][]string

	// Messages are the rows of the table of message types.
	Messages [][]string
}

// A pageFinding is a finding as the HTML page shows it.
type pageFinding struct {
	// Kind is the kind of finding.
	Kind string

	// Message is the full name of the message; for an unknown method, of the service.
	Message string

	// Field is the number and the name of the field; for an unknown method, its name.
	Field string

	// What describes the problem.
	What string

	// Seen is how often the finding occurred.
	Seen int

	// Allowed means that the user has accepted the finding.
	Allowed bool

	// Excerpts are parts of the first frames that show it.
	Excerpts []*excerpt

	// More are the addresses of further frames.
	More []string

	// number is the number of the field; 0 if it is not known.
	number int32

	// name is the name of the field; "" if it is not known.
	name string
}

// An excerpt is the part of a frame that shows a finding.
type excerpt struct {
	// Address is the address of the frame.
	Address string

	// Text is the finding's fields within their parent messages or, for JSON, the text around the member.
	Text string

	// Hex is a hex dump of the finding's bytes; "" for JSON.
	Hex string

	// finding is the finding.
	finding *pageFinding
}

// A frameReader calls do with the frames at addresses, in any order. Secrets must have been redacted from
// the frames.
type frameReader func(ctx context.Context, addresses []string, do func(address string, ex *decode.Exchange, f *decode.Frame)) error

// NewCheckPage builds the HTML page for a report. inputs are the checked captures, and read reads the
// frames for excerpts.
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

// Write writes the HTML page.
func (p *CheckPage) Write(w io.Writer) error {
	page, err := template.New("check").Parse(checkPage)
	if err != nil {
		return err
	}
	return page.Execute(w, p.data)
}

// pageFindings returns the findings of a report for the page. The excerpts have only their addresses yet.
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

// fill sets the text and the hex dump of an excerpt from its frame.
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
	if render.Fields(&b, slices.Values(shown), "") == nil {
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

// onlyFinding returns the fields that a finding is about, within their parent fields; other fields are
// left out. typ is the type of the message that has fields, and left the number of fields that may still
// be added.
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

// textAround returns the part of a JSON message around a member or, if it is not found, the beginning.
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

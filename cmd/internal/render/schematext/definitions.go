package schematext

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/schema/compare"
)

// partsOf are the names of what elements of definitions consist of, by their kind.
var partsOf = map[string]string{"message": "field", "enum": "value", "service": "method", "oneof": "field"}

// packages matches the package in front of the name of a message or enum type.
var packages = regexp.MustCompile(`\b(?:[a-z0-9_]+\.)+([A-Z])`)

// withoutPackages removes the packages from the type names in a text: "stream shop.v1.Order" becomes
// "stream Order".
func withoutPackages(s string) string { return packages.ReplaceAllString(s, "$1") }

// Contents prints a table of the elements in definitions. A terminal shows the request and the response of a method in
// columns of their own, without packages; if it is too narrow, it hides these columns.
func Contents(out *term.Output, list []compare.Listing) error {
	rows := make([][]string, len(list))
	for i, l := range list {
		size, request, response := strconv.Itoa(l.Size), "", ""
		contains := cmp.Or(l.Type, size)
		if unit := partsOf[string(l.Kind)]; unit != "" {
			size = app.Counted(l.Size, unit)
		}
		if l.Type != "" {
			size = ""
			request, response, _ = strings.Cut(withoutPackages(l.Type), " -> ")
		}
		rows[i] = []string{string(l.Kind), l.Element, size, request, response, contains, l.File}
	}
	return out.Table(term.Table{Rows: rows, Columns: []term.Column{
		{Name: "KIND"},
		{Name: "NAME", Shorten: term.Name, Min: 20},
		{Name: "CONTAINS", On: term.Drawn},
		{Name: "REQUEST", Shorten: term.Middle, Min: 24, Drop: 2, On: term.Drawn},
		{Name: "RESPONSE", Shorten: term.Middle, Min: 24, Drop: 2, On: term.Drawn},
		{Name: "CONTAINS", On: term.Plain},
		{Name: "FILE", Shorten: term.Start, Min: 12, Drop: 3},
	}})
}

// Hits prints a table of the elements that a search in definitions found. A terminal shows types without their
// packages.
func Hits(out *term.Output, hits []compare.Hit) error {
	rows := make([][]string, len(hits))
	for i, h := range hits {
		typ := h.Type
		if out.TTY {
			typ = withoutPackages(typ)
		}
		rows[i] = []string{string(h.Kind), h.Element, typ, h.Comment, h.File}
	}
	return out.Table(term.Table{Rows: rows, Columns: []term.Column{
		{Name: "KIND"},
		{Name: "NAME", Shorten: term.Name, Min: 20},
		{Name: "TYPE", Shorten: term.End, Min: 24},
		{Name: "COMMENT", Shorten: term.End, Min: 16, Drop: 1},
		{Name: "FILE", Shorten: term.Start, Min: 12, Drop: 2},
	}})
}

// Refs prints a table of the fields and methods that use a type or a field number.
func Refs(out *term.Output, refs []compare.Ref) error {
	rows := make([][]string, len(refs))
	for i, r := range refs {
		number := ""
		if r.Number != 0 {
			number = strconv.Itoa(int(r.Number))
		}
		rows[i] = []string{string(r.Kind), r.Element, number, r.Label, r.Type, r.Use, r.File}
	}
	return out.Table(term.Table{Rows: rows, Columns: []term.Column{
		{Name: "KIND"},
		{Name: "NAME", Shorten: term.Name, Min: 20},
		{Name: "NUMBER", Right: true},
		{Name: "LABEL", Drop: 2},
		{Name: "TYPE", Shorten: term.Name, Min: 10, Drop: 1},
		{Name: "USE", Shorten: term.End, Min: 10, Drop: 3},
		{Name: "FILE", Shorten: term.Start, Min: 12, Drop: 4},
	}})
}

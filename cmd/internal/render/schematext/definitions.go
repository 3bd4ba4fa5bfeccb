package schematext

import (
	"strconv"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/schema/compare"
)

// partsOf are the names of what elements of definitions consist of, by their kind.
var partsOf = map[string]string{"message": "field", "enum": "value", "service": "method", "oneof": "field"}

// Contents prints a table of the elements in definitions.
func Contents(out *term.Output, list []compare.Listing) error {
	rows := make([][]string, len(list))
	for i, l := range list {
		size := l.Type
		if size == "" {
			size = strconv.Itoa(l.Size)
			if unit := partsOf[string(l.Kind)]; out.TTY && unit != "" {
				size = app.Counted(l.Size, unit)
			}
		}
		rows[i] = []string{string(l.Kind), l.Element, size, l.File}
	}
	return out.Table(term.Table{Rows: rows, Columns: []term.Column{
		{Name: "KIND"},
		{Name: "NAME", Shorten: term.Name, Min: 20},
		{Name: "CONTAINS", Shorten: term.Name, Min: 10},
		{Name: "FILE", Shorten: term.Start, Min: 12, Drop: 1},
	}})
}

// Hits prints a table of the elements that a search in definitions found.
func Hits(out *term.Output, hits []compare.Hit) error {
	rows := make([][]string, len(hits))
	for i, h := range hits {
		rows[i] = []string{string(h.Kind), h.Element, h.Type, h.Comment, h.File}
	}
	return out.Table(term.Table{Rows: rows, Columns: []term.Column{
		{Name: "KIND"},
		{Name: "NAME", Shorten: term.Name, Min: 20},
		{Name: "TYPE", Shorten: term.End, Min: 10},
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

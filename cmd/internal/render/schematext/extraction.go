package schematext

import (
	"strconv"

	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/term"
)

// Extractions prints a table of how many definitions were extracted from each input.
func Extractions(out *term.Output, list []contract.SchemaExtraction) error {
	rows := make([][]string, len(list))
	for i, x := range list {
		rows[i] = []string{
			x.Input, x.Form, strconv.Itoa(x.Messages), strconv.Itoa(x.Enums), strconv.Itoa(x.Services), strconv.Itoa(x.Fields),
			strconv.Itoa(len(x.Unresolved)),
		}
	}
	return out.Table(term.Table{Rows: rows, Columns: []term.Column{
		{Name: "INPUT", Shorten: term.Start, Min: 20},
		{Name: "FORMAT", Shorten: term.End, Min: 12, Drop: 3},
		{Name: "MESSAGES", Right: true},
		{Name: "ENUMS", Right: true, Drop: 2},
		{Name: "SERVICES", Right: true, Drop: 1},
		{Name: "FIELDS", Right: true},
		{Name: "UNRESOLVED", Right: true},
	}})
}

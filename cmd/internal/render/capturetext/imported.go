package capturetext

import (
	"fmt"
	"strconv"

	"unwire/captures/pcap"
	"unwire/captures/transfer"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/term"
)

// Connections prints a table of the TCP connections in a packet file, with an additional line for each
// further part that could not be decoded.
func Connections(out *term.Output, conns []pcap.Connection) error {
	var rows [][]string
	for _, c := range conns {
		row := []string{
			strconv.FormatInt(c.Number, 10), c.Client, c.Server, c.ServerName, c.TLS, c.Protocol,
			strconv.Itoa(c.Exchanges), strconv.FormatInt(c.BytesUp, 10), strconv.FormatInt(c.BytesDown, 10), "",
		}
		for _, problem := range Problems(c) {
			row[len(row)-1] = problem
			rows = append(rows, row)
			row = []string{row[0], "", "", "", "", "", "", "", "", ""}
		}
	}
	return out.Table(term.Table{Rows: rows, Columns: []term.Column{
		{Name: "CONNECTION", Right: true},
		{Name: "CLIENT", Shorten: term.Middle, Min: 15, Drop: 5},
		{Name: "SERVER", Shorten: term.Middle, Min: 15, Drop: 1},
		{Name: "NAME", Shorten: term.Middle, Min: 16},
		{Name: "TLS", Drop: 4},
		{Name: "PROTOCOL"},
		{Name: "EXCHANGES", Right: true, Drop: 2},
		{Name: "BYTES SENT", Right: true, Drop: 3},
		{Name: "BYTES RECEIVED", Right: true, Drop: 3},
		{Name: "PROBLEM", Shorten: term.End, Min: 16},
	}, Detail: func(i int) bool { return rows[i][9] != "" }})
}

// Problems describes each part of a connection that could not be decoded. If there is none, it returns a
// list with one empty string.
func Problems(c pcap.Connection) (list []string) {
	for _, u := range c.Undecoded {
		list = append(list, fmt.Sprintf("data sent by the %s was not decoded from offset %d on: %s", render.Sender(u.Dir), u.Offset, u.Reason))
	}
	for _, g := range c.Gaps {
		list = append(list, fmt.Sprintf("data sent by the %s lacks %s at offset %d", render.Sender(g.Dir), app.Counted(g.Bytes, "byte"), g.Offset))
	}
	if len(list) == 0 {
		return []string{""}
	}
	return list
}

// ImportSummary describes in one line what was imported from packets, and what was skipped.
func ImportSummary(s pcap.Summary) string {
	text := fmt.Sprintf("imported %s from %s with %s", app.Counted(s.Exchanges, "exchange"), app.Counted(s.Connections, "connection"), app.Counted(s.Packets, "packet"))
	for _, p := range []struct {
		n           int64
		what, about string
	}{
		{s.Undecoded, "connection", " could not be decoded completely"},
		{s.NotTCP, "packet", " of protocols other than TCP"},
		{s.QUIC, "datagram", " of QUIC (HTTP/3), which is not supported"},
		{s.Fragments, "IP fragment", " without the other fragments"},
		{s.OtherLink, "packet", " of an unsupported link type"},
		{s.Cut, "packet", " truncated when they were recorded"},
	} {
		if p.n > 0 {
			text += "; " + app.Counted(p.n, p.what) + p.about
		}
	}
	if s.Keys == 0 && s.Undecoded > 0 {
		text += "; no TLS keys found: use --keylog"
	}
	return text
}

// ImportReport prints how many exchanges were imported from a file, and which problems were found.
func ImportReport(out *term.Output, rep *transfer.Report) {
	for _, p := range rep.Problems {
		fmt.Fprintf(out, "unwire: %s\n", term.Clean(p))
	}
	if rep.More > 0 {
		fmt.Fprintf(out, "unwire: and %s\n", app.Counted(rep.More, "more problem"))
	}
	text := "imported " + app.Counted(rep.Exchanges, "exchange")
	if rep.Skipped > 0 {
		text += fmt.Sprintf("; could not read %s of the file", app.Counted(rep.Skipped, "record"))
	}
	fmt.Fprintf(out, "unwire: %s\n", text)
}

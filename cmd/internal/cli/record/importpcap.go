package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"unwire/captures/pcap"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
)

// maxConnectionRows is how many connections a table lists; --json lists all.
const maxConnectionRows = 10_000

// importPackets imports pcap and pcapng. What was read before an error stays,
// and is told before it.
func importPackets(ctx context.Context, a *app.App, j importJob) error {
	var conns []pcap.Connection
	var printErr error
	sum, err := pcap.Import(ctx, j.in, pcap.Options{
		Store: j.store, Keys: j.keys,
		Connection: func(c pcap.Connection) {
			switch {
			case j.asJSON:
				printErr = errors.Join(printErr, a.Print(contract.NewConnection(c)))
			case len(conns) < maxConnectionRows:
				conns = append(conns, c)
			}
		},
	})
	if j.asJSON {
		printErr = errors.Join(printErr, a.Print(contract.NewImportedPackets(sum)))
	} else if len(conns) > 0 {
		printErr = connectionTable(a, conns)
	}
	a.Say("%s", importSummary(sum))
	if err != nil {
		return fmt.Errorf("%s: %w", j.file, err)
	}
	if printErr == nil && sum.Exchanges == 0 {
		return app.Fail(app.ExitFinding, errors.New("no exchange could be read"), "")
	}
	return printErr
}

func readKeyLog(keys *pcap.KeyLog, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := keys.Read(f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// connectionTable has a line a connection, and one for each further thing that
// could not be decoded.
func connectionTable(a *app.App, conns []pcap.Connection) error {
	var rows [][]string
	for _, c := range conns {
		row := []string{
			strconv.FormatInt(c.Number, 10), c.Client, c.Server, c.ServerName, c.TLS, c.Protocol,
			strconv.Itoa(c.Exchanges), app.ByteSize(c.BytesUp), app.ByteSize(c.BytesDown), "",
		}
		for _, problem := range problems(c) {
			row[len(row)-1] = problem
			rows = append(rows, row)
			row = []string{row[0], "", "", "", "", "", "", "", "", ""}
		}
	}
	return a.Out.Table([]string{"CONN", "CLIENT", "SERVER", "NAME", "TLS", "PROTOCOL", "EXCHANGES", "BYTES↑", "BYTES↓", "NOT DECODED"}, rows)
}

// problems says what of a connection could not be decoded; one empty text if
// there is nothing.
func problems(c pcap.Connection) (list []string) {
	for _, u := range c.Undecoded {
		list = append(list, fmt.Sprintf("%s from %d: %s", u.Dir, u.Offset, u.Reason))
	}
	for _, g := range c.Gaps {
		list = append(list, fmt.Sprintf("%s: %s lost at %d", g.Dir, app.Counted(g.Bytes, "byte"), g.Offset))
	}
	if len(list) == 0 {
		return []string{""}
	}
	return list
}

// importSummary says an import in a line, and what was passed over.
func importSummary(s pcap.Summary) string {
	text := fmt.Sprintf("%s from %s, %s", app.Counted(s.Exchanges, "exchange"), app.Counted(s.Connections, "connection"), app.Counted(s.Packets, "packet"))
	for _, p := range []struct {
		n           int64
		what, about string
	}{
		{s.Undecoded, "connection", " not fully decoded"},
		{s.NotTCP, "packet", " not TCP"},
		{s.QUIC, "datagram", " of QUIC (HTTP/3), which is not read"},
		{s.Fragments, "IP fragment", " without the others"},
		{s.OtherLink, "packet", " of another link type"},
		{s.Cut, "packet", " cut short by the recorder"},
	} {
		if p.n > 0 {
			text += "; " + app.Counted(p.n, p.what) + p.about
		}
	}
	if s.Keys == 0 && s.Undecoded > 0 {
		text += "; no TLS keys: give --keylog"
	}
	return text
}

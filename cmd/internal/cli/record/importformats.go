package record

import (
	"context"
	"errors"
	"fmt"
	"io"

	"unwire/captures"
	"unwire/captures/flow"
	"unwire/captures/har"
	"unwire/captures/jsonl"
	"unwire/captures/transfer"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
)

// formatImporters are the formats of whole exchanges. JSON Lines come last:
// any object is taken for them.
func formatImporters() []importer {
	return []importer{
		{"HAR", har.Sniff, exchangeImporter(har.Import)},
		{"mitmproxy flows", flow.Sniff, exchangeImporter(flow.Import)},
		{"JSON Lines", jsonl.Sniff, exchangeImporter(jsonl.Import)},
	}
}

// exchangeImporter runs an import and tells what became of it, also of what was
// read before an error.
func exchangeImporter(read func(context.Context, io.Reader, captures.Target) (transfer.Report, error)) func(context.Context, *app.App, importJob) error {
	return func(ctx context.Context, a *app.App, j importJob) error {
		rep, err := read(ctx, j.in, j.store)
		if printErr := printImported(a, rep, j.asJSON); printErr != nil {
			return printErr
		}
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", app.InputName(j.file), err)
		case rep.Exchanges == 0:
			return app.Fail(app.ExitFinding, errors.New("no exchange could be read"), "")
		}
		return nil
	}
}

// A reportLine is the last line of `unwire import --json`.
type reportLine struct {
	V         int      `json:"v"`
	Event     string   `json:"event"`
	Exchanges int      `json:"exchanges"`
	Skipped   int      `json:"skipped"`
	Problems  []string `json:"problems"`
	More      int      `json:"more_problems"`
}

func printImported(a *app.App, rep transfer.Report, asJSON bool) error {
	if asJSON {
		l := reportLine{V: 1, Event: "imported", Exchanges: rep.Exchanges, Skipped: rep.Skipped, Problems: rep.Problems, More: rep.More}
		if l.Problems == nil {
			l.Problems = []string{}
		}
		return a.PrintJSON(l)
	}
	for _, p := range rep.Problems {
		a.Say("unwire: %s", term.Clean(p))
	}
	if rep.More > 0 {
		a.Say("unwire: and %d more", rep.More)
	}
	a.Say("unwire: %s imported, %s skipped", app.Counted(rep.Exchanges, "exchange"), app.Counted(rep.Skipped, "record"))
	return nil
}

package cli

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
func exchangeImporter(read func(context.Context, io.Reader, captures.Target) (transfer.Report, error)) func(*app, context.Context, importJob) error {
	return func(a *app, ctx context.Context, j importJob) error {
		rep, err := read(ctx, j.in, j.store)
		if printErr := a.printImported(rep, j.asJSON); printErr != nil {
			return printErr
		}
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", inputName(j.file), err)
		case rep.Exchanges == 0:
			return fail(exitFinding, errors.New("no exchange could be read"), "")
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

func (a *app) printImported(rep transfer.Report, asJSON bool) error {
	if asJSON {
		l := reportLine{V: 1, Event: "imported", Exchanges: rep.Exchanges, Skipped: rep.Skipped, Problems: rep.Problems, More: rep.More}
		if l.Problems == nil {
			l.Problems = []string{}
		}
		return a.printJSON(l)
	}
	for _, p := range rep.Problems {
		a.say("unwire: %s", term.Clean(p))
	}
	if rep.More > 0 {
		a.say("unwire: and %d more", rep.More)
	}
	a.say("unwire: %s imported, %s skipped", counted(rep.Exchanges, "exchange"), counted(rep.Skipped, "record"))
	return nil
}

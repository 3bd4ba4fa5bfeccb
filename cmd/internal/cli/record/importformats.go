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
	"unwire/cmd/internal/contract"
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

func printImported(a *app.App, rep transfer.Report, asJSON bool) error {
	if asJSON {
		return a.Print(contract.NewImported(rep))
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

package record

import (
	"context"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/cli/workbench"
)

// startWorkbench shows the captures of a recording in a browser, with --ui. It returns nil
// without. The proxy, if there is one, refuses to connect to the page: a recorded page could
// otherwise reach it under any name that resolves to its address.
func startWorkbench(ctx context.Context, a *app.App, f CaptureFlags, rec *Recorder, files func() []string) (*workbench.Workbench, error) {
	if !f.ui {
		return nil, nil
	}
	b, err := workbench.Start(ctx, a, workbench.Options{Listen: "127.0.0.1:0", Open: !f.noOpen, Files: files, Run: f.run})
	if err != nil {
		return nil, err
	}
	if rec != nil {
		rec.proxy.Refuse(b.Addr)
	}
	if !f.json {
		a.Say("unwire: showing the capture at %s", b.URL)
	}
	return b, nil
}

// stay shows the captures of a recording that has ended until the command is interrupted, and
// at once if that has happened.
func stay(ctx context.Context, a *app.App, b *workbench.Workbench) {
	if b == nil {
		return
	}
	if ctx.Err() == nil && !a.Signals.Caught() {
		a.Say("unwire: the recording has ended; Ctrl-C ends the page")
		<-ctx.Done()
	}
	b.Close()
}

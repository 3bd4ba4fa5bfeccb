package record

import (
	"context"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/cli/workbench"
)

// startWorkbench starts the web page of --ui, which shows the capture files that files returns. It
// returns nil if the flag is not set. The proxy of rec, if rec is not nil, then refuses connections to
// the page, so that a recorded web page cannot reach it through the proxy.
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

// stay keeps the web page of a finished recording available until the user interrupts the command. It
// returns at once if that has already happened, or if b is nil.
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

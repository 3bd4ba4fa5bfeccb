// Package annotate has the commands that add to a capture what its user knows: note, for notes and
// marks, and use, for definitions. Both also work while the capture is being recorded: its recorder
// stores what they send it. The command config shows the settings of unwire.yaml, which apply to
// all captures in a folder.
//
// A file has the name of its command.
package annotate

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/term"
)

// Commands returns the commands note, use and config.
func Commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{noteCommand(a), useCommand(a), configCommand(a)}
}

// change opens a capture and calls do, which writes notes or definitions into it. If the capture has an
// older file format, change first converts the file.
func change(ctx context.Context, a *app.App, file string, do func(c *query.Capture) error) error {
	err := withCapture(a, file, do)
	if !errors.Is(err, captures.ErrOlderFormat) {
		return changeError(err)
	}
	// Nothing is recorded: this converts the file.
	s, err := store.Create(file, store.Options{KeepSecrets: true})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		return err
	}
	a.Say("unwire: %s was converted to the current capture format", term.Clean(file))
	return changeError(withCapture(a, file, do))
}

// withCapture opens a capture, calls do with it, and closes it.
func withCapture(a *app.App, file string, do func(c *query.Capture) error) error {
	c, err := a.OpenCapture(file)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// changeError adds a hint if err says that another process is recording to the capture.
func changeError(err error) error {
	if errors.Is(err, captures.ErrInUse) {
		return app.Fail(app.ExitInput, err, "try again when the recording has ended")
	}
	return err
}

package record

import (
	"context"
	"os"
	"path/filepath"

	"unwire/captures/passive"
	"unwire/cmd/internal/app"
)

// recoverLeftOver finishes the captures of passive recorders that were killed, and deletes the packets
// and TLS keys that they left behind. A failure is only reported, so that the next capture can still
// run.
func recoverLeftOver(ctx context.Context, a *app.App, out string) {
	left, refused, err := passive.Find(os.TempDir())
	if err != nil {
		a.Say("unwire: warning: cannot search for packets that killed captures left: %v", err)
	}
	for _, r := range refused {
		a.SayRefusedPackets(r)
	}
	for _, l := range left {
		a.Recover(ctx, l, filepath.Dir(out))
	}
}

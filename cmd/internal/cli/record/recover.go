package record

import (
	"context"
	"os"
	"path/filepath"

	"unwire/captures/passive"
	"unwire/cmd/internal/app"
)

// recoverLeftOver completes the captures of passive recordings whose process was killed, and deletes the
// packets and TLS keys that they left behind. Errors are only printed, so that a new recording can start.
// out is the new capture.
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

package record

import (
	"context"
	"os"
	"path/filepath"

	"unwire/captures/passive"
	"unwire/cmd/internal/app"
)

// recoverLeftOver completes the captures whose passive recorder was killed, and removes
// what it has left: packets, and the TLS keys that open them. What fails does not keep the
// next capture from running.
func recoverLeftOver(ctx context.Context, a *app.App, out string) {
	left, refused, err := passive.Find(os.TempDir())
	if err != nil {
		a.Say("unwire: warning: not searched for packets of killed captures: %v", err)
	}
	for _, r := range refused {
		a.SayRefusedPackets(r)
	}
	for _, l := range left {
		a.Recover(ctx, l, filepath.Dir(out))
	}
}

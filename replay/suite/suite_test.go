package suite

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"unwire/captures/store"
	"unwire/proto"
	"unwire/replay"
	"unwire/replay/internal/standintest"
	"unwire/replay/outbound"
	"unwire/replay/standin"
)

// A suite is run to its end, whatever its experiments come to.
func TestRun(t *testing.T) {
	a := standintest.New(t, standin.Options{})
	if id := a.Turn("Does Backoff ever return more than its limit?"); id != 2 {
		a.Turn("Does Backoff ever return more than its limit?")
	}
	files, err := Files("testdata")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files[:1:1], filepath.Join(t.TempDir(), "none"+Suffix))
	o := Options{
		Replay:  replay.Options{Policy: outbound.Policy{Roots: a.Roots}, Schema: a.Schema, Credentials: credentials(t)},
		Capture: "turn.uwc", Learn: true,
		Open: func(path string) (*store.Store, error) {
			if path != "turn.uwc" {
				t.Errorf("%s is opened", path)
			}
			return store.Open(filepath.Join(a.Dir, path), store.ReadOptions{Profile: proto.Profile()})
		},
	}
	var got []*Outcome
	if err := Run(t.Context(), files, o, func(o *Outcome) error { got = append(got, o); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Err != nil || got[0].Failed != nil || !strings.HasPrefix(got[0].About, "The request") || got[1].Err == nil {
		t.Errorf("%+v %+v", got[0], got[1])
	}

	ended := errors.New("ended")
	if err := Run(t.Context(), files, o, func(*Outcome) error { return ended }); !errors.Is(err, ended) {
		t.Error(err)
	}
}

package secret_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/captures/store"
	"unwire/decode/secret"
)

// A view is what Clean copies, chunk for chunk.
func TestViewIsTheCopy(t *testing.T) {
	ctx := t.Context()
	from, out := open(t, record(t)), filepath.Join(t.TempDir(), "clean.uwc")
	to, err := store.Create(out, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := secret.Clean(ctx, to, from, testRules(t)); err != nil {
		t.Fatal(err)
	}
	view, err := secret.NewView(ctx, from, to.Redactor, testRules(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	copied := open(t, out)
	for want, err := range copied.Exchanges(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		got, err := view.Exchange(ctx, want.ID)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("exchange %d: %s", want.ID, d)
		}
		for _, from := range []int64{0, 1} {
			if d := cmp.Diff(chunks(t, copied, want.ID, from), chunks(t, view, want.ID, from)); d != "" {
				t.Errorf("exchange %d from %d: %s", want.ID, from, d)
			}
		}
	}
	n := 0
	for ex, err := range view.Exchanges(ctx) {
		if err != nil || ex == nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 3 || view.Replaced() != 3 {
		t.Errorf("%d exchanges, %d with secrets", n, view.Replaced())
	}
	again, err := secret.NewView(ctx, copied, redact.New(redact.Options{}), testRules(t))
	if err != nil {
		t.Fatal(err)
	}
	for ex, err := range again.Exchanges(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(chunks(t, copied, ex.ID, 0), chunks(t, again, ex.ID, 0)); d != "" {
			t.Errorf("what was clean has changed: %s", d)
		}
	}
	if again.Replaced() != 0 {
		t.Errorf("%d exchanges of the copy had secrets", again.Replaced())
	}
}

func chunks(t *testing.T, src captures.Source, id, from int64) (list []captures.Chunk) {
	t.Helper()
	for c, err := range src.Chunks(t.Context(), id, from) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

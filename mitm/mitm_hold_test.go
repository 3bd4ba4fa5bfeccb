package mitm

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"unwire/mitm/intercept"
	"unwire/mitm/rules"
)

// TestHeldUntilTheClientLeaves: a held response is released when its client leaves, and a response that arrives after
// that is not held.
func TestHeldUntilTheClientLeaves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tls, h2, early bool }{
		{true, true, false},
		{true, false, false},
		{false, false, false},
		{true, false, true},
		{false, false, true},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel()
			arrived, answer := make(chan struct{}), make(chan struct{})
			handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				close(arrived)
				<-answer
				w.Header().Set("Content-Type", "application/proto")
				_, _ = w.Write(oneField("held"))
			})
			origin := httptest.NewServer(handler)
			if c.tls {
				origin = newTLSOrigin(t, c.h2, handler)
			}
			t.Cleanup(origin.Close)
			heldOnce := make(chan struct{}, 10)
			holder := intercept.New(intercept.Options{Changed: func(intercept.Frame, bool) { heldOnce <- struct{}{} }})
			t.Cleanup(holder.Close)
			policy := rules.New(loadRules(t, "rules:\n  - match: dir:down\n    hold: true\n"), rules.Options{Hold: holder.Hold})
			b := newTestProxy(t, []*httptest.Server{origin}, func(o *Options) { o.Rewrite = policy })

			ctx, leave := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				r, _ := http.NewRequestWithContext(ctx, http.MethodPost, origin.URL+"/a.S/M", bytes.NewReader(oneField("x")))
				r.Header.Set("Content-Type", "application/proto")
				if res, err := b.client(c.h2).Do(r); err == nil {
					res.Body.Close()
				}
			}()
			<-arrived
			if !c.early {
				close(answer)
				if frames := holder.Held(t.Context(), 0); len(frames) != 1 {
					t.Fatalf("%d frames are held", len(frames))
				}
			}
			leave()
			<-done
			if c.early {
				// The proxy notices that at once.
				time.Sleep(100 * time.Millisecond)
				close(answer)
			}
			b.one()
			now, cancel := context.WithCancel(t.Context())
			cancel()
			if frames := holder.Held(now, 0); len(frames) != 0 || len(heldOnce) > 0 == c.early {
				t.Errorf("%d frames are held after the client has left, %d changes", len(frames), len(heldOnce))
			}
		})
	}
}

package inspect

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"unwire/captures"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/schema"
)

// frameEvery is the interval at which a capture that is being recorded is read for new data.
const frameEvery = 100 * time.Millisecond

// watch reports the events of a capture while it is recorded to the Watcher that watcherOf returns: of
// one exchange until it has ended, or of all exchanges until the user interrupts. If the capture does not
// exist yet, watch waits for it.
func watch(ctx context.Context, a *app.App, addr query.Address, watcherOf func(*query.Capture) decode.Watcher) error {
	file, err := awaitCapture(ctx, a, addr.File)
	if err != nil {
		return err
	}
	defer file.Close()
	w := watcherOf(file)
	if _, err := file.Exchange(ctx, addr.Exchange); addr.Exchange != 0 && errors.Is(err, captures.ErrNoExchange) {
		a.Say("unwire: waiting until exchange %d is recorded", addr.Exchange)
	}
	ended := false
	onEnded := w.Ended
	w.Ended = func(ex *captures.Exchange, s *decode.Stream) error {
		if ended = addr.Exchange != 0; onEnded == nil {
			return nil
		}
		return onEnded(ex, s)
	}
	if err := decode.Watch(file.Follow(ctx, frameEvery), addr.Exchange, w); err != nil || ended {
		return err
	}
	if ctx.Err() != nil {
		return app.Fail(app.ExitInterrupted, nil, "")
	}
	return nil
}

// awaitCapture opens a capture file. If the file does not exist yet, it waits for it.
func awaitCapture(ctx context.Context, a *app.App, path string) (*query.Capture, error) {
	told := false
	for tries := 0; ; {
		info, err := os.Stat(path)
		if err == nil && info.Size() > 0 {
			// Its recorder may be about to write its tables.
			capture, err := a.OpenCapture(path)
			if tries++; err == nil || !told || tries > 20 {
				return capture, err
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if !told {
			a.Say("unwire: waiting for %s", term.Clean(path))
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, app.Fail(app.ExitInterrupted, nil, "")
		case <-time.After(frameEvery):
		}
	}
}

// followShow executes 'unwire show --follow': it prints the frames of exchanges while they are recorded.
func followShow(ctx context.Context, a *app.App, addr query.Address, o showFlags) error {
	defs, err := a.LoadDefinitions(ctx, o.proto, addr.File)
	if err != nil {
		return err
	}
	splitting, chosen, err := parseShowAs(o)
	if err != nil {
		return err
	}

	// Inferred types may change while more frames arrive; each line uses what is known at its time.
	seen := followedViews{defs: defs, chosen: chosen, by: map[string]*query.Views{}}
	w := bufio.NewWriter(a.Out)
	if o.json {
		return seen.watch(ctx, a, addr, decode.Watcher{Split: splitting, Frame: func(ex *captures.Exchange, call decode.Call, f *decode.Frame) error {
			v := seen.of(ctx, ex, call)
			return a.Print(contract.NewFrame(resolved(ex, call), f, v.Of(call, f.Dir), v.FieldsOf))
		}})
	}
	last := int64(0)
	// Where several are watched, a line says whose frames come.
	turn := func(id int64) {
		if addr.Exchange == 0 && last != id {
			fmt.Fprintf(w, "%s\n", a.Out.Dim(fmt.Sprintf("— exchange %d —", id)))
		}
		last = id
	}
	return seen.watch(ctx, a, addr, decode.Watcher{
		Split: splitting,
		Began: func(ex *captures.Exchange, call decode.Call) error {
			last = ex.ID
			render.ExchangeBegan(a.Out, w, ex, call)
			return w.Flush()
		},
		Responded: func(ex *captures.Exchange, _ decode.Call) error {
			turn(ex.ID)
			fmt.Fprintf(w, "↓ status %d\n", ex.Status)
			render.Headers(a.Out, w, "↓", "", ex.ResponseHeaders)
			return w.Flush()
		},
		Frame: func(ex *captures.Exchange, call decode.Call, f *decode.Frame) error {
			turn(ex.ID)
			render.Frame(a.Out, w, resolved(ex, call), f, seen.of(ctx, ex, call), o.frameOptions())
			return w.Flush()
		},
		Ended: func(ex *captures.Exchange, s *decode.Stream) error {
			turn(ex.ID)
			code, message := s.Status()
			render.ExchangeEnded(a.Out, w, ex, code, message)
			return w.Flush()
		},
	})
}

// followedViews has, for each method, the settings with which its frames are decoded while they are
// recorded: the definitions and the field types that a user chose. Unlike for finished exchanges,
// evidence is not collected from other frames.
type followedViews struct {
	// capture is the capture that is being recorded.
	capture *query.Capture

	// defs are the definitions; nil for none.
	defs *schema.Schema

	// chosen are the field types of --as.
	chosen []query.Choice

	// by caches the settings by method.
	by map[string]*query.Views
}

// watch follows a capture that is being recorded and passes its events to w. It sets s.capture.
func (s *followedViews) watch(ctx context.Context, a *app.App, addr query.Address, w decode.Watcher) error {
	return watch(ctx, a, addr, func(c *query.Capture) decode.Watcher {
		s.capture = c
		return w
	})
}

// of returns the decoding settings for the frames of an exchange.
func (s *followedViews) of(ctx context.Context, ex *captures.Exchange, call decode.Call) *query.Views {
	method := decode.MethodOf(ex, call)
	if v := s.by[method]; v != nil {
		return v
	}
	v := s.capture.ViewsOfMethod(ctx, method, s.defs)
	v.Add(s.chosen)
	s.by[method] = v
	return v
}

// resolved wraps an exchange that is still being recorded as a conversation that consists of this one
// call.
func resolved(ex *captures.Exchange, call decode.Call) conversation.Resolved {
	return conversation.Resolved{Exchange: &decode.Exchange{Exchange: *ex, Call: call}}
}

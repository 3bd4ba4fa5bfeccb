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
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/text"
	"unwire/schema"
)

const frameEvery = 100 * time.Millisecond

// watch has w called with what happens in an exchange until it has ended, or in all of
// them until the interrupt. It waits for a capture that does not exist yet.
func watch(ctx context.Context, a *app.App, addr app.Address, w decode.Watcher) error {
	file, err := awaitCapture(ctx, a, addr.File)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Exchange(ctx, addr.Exchange); addr.Exchange != 0 && errors.Is(err, captures.ErrNoExchange) {
		a.Say("unwire: waiting for exchange %d", addr.Exchange)
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

// awaitCapture opens a capture as soon as there is one.
func awaitCapture(ctx context.Context, a *app.App, path string) (*store.Store, error) {
	told := false
	for tries := 0; ; {
		info, err := os.Stat(path)
		if err == nil && info.Size() > 0 {
			// Its recorder may be about to write its tables.
			store, err := app.OpenCapture(path)
			if tries++; err == nil || !told || tries > 20 {
				return store, err
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

// followDecode prints frames as text while they are recorded.
func followDecode(ctx context.Context, a *app.App, f decodeFlags, addr app.Address) error {
	if addr.Frame >= 0 {
		return app.Usagef("--follow goes with a capture or an exchange of it, not with a frame")
	}
	defs, err := app.LoadDefinitions(ctx, f.schema)
	if err != nil {
		return err
	}
	md, err := f.message(ctx)
	if err != nil {
		return err
	}
	whole, chosen, err := parseChosenAll(f.as)
	if err != nil {
		return err
	}
	seen := followedViews{file: addr.File, defs: defs, chosen: chosen, by: map[string]*views{}}
	w := bufio.NewWriter(a.Out)
	return watch(ctx, a, addr, decode.Watcher{
		Frame: func(ex *captures.Exchange, call decode.Call, fr *decode.Frame) error {
			at := app.Address{File: addr.File, Exchange: ex.ID, Dir: fr.Dir, Frame: fr.Seq}
			if f.format != "json" {
				fmt.Fprintf(w, "# %s  %.1f ms, %d bytes\n", term.Clean(at.String()), app.Millis(fr.T), len(fr.Raw))
			}
			by := seen.of(ctx, ex, call).of(call, fr.Dir)
			if md != nil {
				by.Type = md
			}
			doc, err := text.Decode(fr.Data, text.Options{In: "raw", As: whole, Type: by.Type, Choices: by.Choices})
			if err != nil {
				return err
			}
			if err := writeDocument(a, w, doc, f, by); err != nil {
				return err
			}
			return w.Flush()
		},
	})
}

// followShow shows exchanges while they are recorded.
func followShow(ctx context.Context, a *app.App, addr app.Address, o showFlags) error {
	defs, err := app.LoadDefinitions(ctx, o.dir)
	if err != nil {
		return err
	}
	chosen, err := parseShowAs(o)
	if err != nil {
		return err
	}
	seen := followedViews{file: addr.File, defs: defs, chosen: chosen, by: map[string]*views{}}
	w := bufio.NewWriter(a.Out)
	if o.json {
		return watch(ctx, a, addr, decode.Watcher{Frame: func(ex *captures.Exchange, call decode.Call, f *decode.Frame) error {
			return a.PrintJSON(newFrameLine(conversation.Resolved{Exchange: &decode.Exchange{Exchange: *ex, Call: call}}, f, seen.of(ctx, ex, call)))
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
	return watch(ctx, a, addr, decode.Watcher{
		Began: func(ex *captures.Exchange, call decode.Call) error {
			last = ex.ID
			fmt.Fprintf(w, "%s\n", a.Out.Bold(term.Clean(ex.Method+" "+ex.URL)))
			fmt.Fprintf(w, "exchange %d · %s · HTTP/%s\n", ex.ID, call.Protocol, term.Clean(ex.HTTP))
			printHeaders(a, w, "↑", "", ex.RequestHeaders)
			return w.Flush()
		},
		Responded: func(ex *captures.Exchange, _ decode.Call) error {
			turn(ex.ID)
			fmt.Fprintf(w, "↓ status %d\n", ex.Status)
			printHeaders(a, w, "↓", "", ex.ResponseHeaders)
			return w.Flush()
		},
		Frame: func(ex *captures.Exchange, call decode.Call, f *decode.Frame) error {
			turn(ex.ID)
			printFrame(a, w, &decode.Exchange{Exchange: *ex, Call: call}, f, seen.of(ctx, ex, call), o)
			return w.Flush()
		},
		Ended: func(ex *captures.Exchange, s *decode.Stream) error {
			turn(ex.ID)
			printHeaders(a, w, "↓", "trailer ", ex.ResponseTrailers)
			code, message := s.Status()
			fmt.Fprintf(w, "%s\n", a.Out.Dim(fmt.Sprintf("%s · %s · %s", outcomeWord(ex.Outcome), term.Clean(code), ex.Duration.Round(10*time.Microsecond))))
			if message != "" {
				fmt.Fprintf(w, "message: %s\n", term.Clean(message))
			}
			return w.Flush()
		},
	})
}

// followedViews are how frames are read while they are recorded: by what was chosen
// for their method, without evidence of frames that have not come yet.
type followedViews struct {
	file   string
	defs   *schema.Schema
	chosen []chosenReading
	by     map[string]*views
}

func (s *followedViews) of(ctx context.Context, ex *captures.Exchange, call decode.Call) *views {
	method := decode.MethodOf(ex, call)
	if v := s.by[method]; v != nil {
		return v
	}
	v := &views{defs: s.defs}
	s.by[method] = v
	if store, err := app.OpenCapture(s.file); err == nil {
		v.choices = decode.ChoicesOf(ctx, store, method)
		_ = store.Close()
	}
	for _, c := range s.chosen {
		for d := range v.choices {
			if !c.given || c.dir == captures.Direction(d) {
				v.choices[d] = append(v.choices[d], c.Choice)
			}
		}
	}
	return v
}

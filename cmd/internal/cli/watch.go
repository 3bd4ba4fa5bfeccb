package cli

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
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/decode/conversation"
	"unwire/decode/text"
	"unwire/schema"
)

const frameEvery = 100 * time.Millisecond

// watch has w called with what happens in an exchange until it has ended, or in all of
// them until the interrupt. It waits for a capture that does not exist yet.
func (a *app) watch(ctx context.Context, addr address, w decode.Watcher) error {
	file, err := a.awaitCapture(ctx, addr.File)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Exchange(ctx, addr.Exchange); addr.Exchange != 0 && errors.Is(err, captures.ErrNoExchange) {
		a.say("unwire: waiting for exchange %d", addr.Exchange)
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
		return fail(exitInterrupted, nil, "")
	}
	return nil
}

// awaitCapture opens a capture as soon as there is one.
func (a *app) awaitCapture(ctx context.Context, path string) (*store.Store, error) {
	told := false
	for tries := 0; ; {
		info, err := os.Stat(path)
		if err == nil && info.Size() > 0 {
			// Its recorder may be about to write its tables.
			store, err := openCapture(path)
			if tries++; err == nil || !told || tries > 20 {
				return store, err
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if !told {
			a.say("unwire: waiting for %s", term.Clean(path))
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, fail(exitInterrupted, nil, "")
		case <-time.After(frameEvery):
		}
	}
}

// followDecode prints frames as text while they are recorded.
func (a *app) followDecode(ctx context.Context, f decodeFlags, addr address) error {
	if addr.Frame >= 0 {
		return usagef("--follow goes with a capture or an exchange of it, not with a frame")
	}
	defs, err := loadDefinitions(ctx, f.schema)
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
	w := bufio.NewWriter(a.out)
	return a.watch(ctx, addr, decode.Watcher{
		Frame: func(ex *captures.Exchange, call decode.Call, fr *decode.Frame) error {
			at := address{File: addr.File, Exchange: ex.ID, Dir: fr.Dir, Frame: fr.Seq}
			if f.format != "json" {
				fmt.Fprintf(w, "# %s  %.1f ms, %d bytes\n", term.Clean(at.String()), millis(fr.T), len(fr.Raw))
			}
			by := seen.of(ctx, ex, call).of(call, fr.Dir)
			if md != nil {
				by.Type = md
			}
			doc, err := text.Decode(fr.Data, text.Options{In: "raw", As: whole, Type: by.Type, Choices: by.Choices})
			if err != nil {
				return err
			}
			if err := a.writeDocument(w, doc, f, by); err != nil {
				return err
			}
			return w.Flush()
		},
	})
}

// followShow shows exchanges while they are recorded.
func (a *app) followShow(ctx context.Context, addr address, o showFlags) error {
	defs, err := loadDefinitions(ctx, o.dir)
	if err != nil {
		return err
	}
	chosen, err := parseShowAs(o)
	if err != nil {
		return err
	}
	seen := followedViews{file: addr.File, defs: defs, chosen: chosen, by: map[string]*views{}}
	w := bufio.NewWriter(a.out)
	if o.json {
		return a.watch(ctx, addr, decode.Watcher{Frame: func(ex *captures.Exchange, call decode.Call, f *decode.Frame) error {
			return a.printJSON(newFrameLine(conversation.Resolved{Exchange: &decode.Exchange{Exchange: *ex, Call: call}}, f, seen.of(ctx, ex, call)))
		}})
	}
	last := int64(0)
	// Where several are watched, a line says whose frames come.
	turn := func(id int64) {
		if addr.Exchange == 0 && last != id {
			fmt.Fprintf(w, "%s\n", a.out.Dim(fmt.Sprintf("— exchange %d —", id)))
		}
		last = id
	}
	return a.watch(ctx, addr, decode.Watcher{
		Began: func(ex *captures.Exchange, call decode.Call) error {
			last = ex.ID
			fmt.Fprintf(w, "%s\n", a.out.Bold(term.Clean(ex.Method+" "+ex.URL)))
			fmt.Fprintf(w, "exchange %d · %s · HTTP/%s\n", ex.ID, call.Protocol, term.Clean(ex.HTTP))
			a.printHeaders(w, "↑", "", ex.RequestHeaders)
			return w.Flush()
		},
		Responded: func(ex *captures.Exchange, _ decode.Call) error {
			turn(ex.ID)
			fmt.Fprintf(w, "↓ status %d\n", ex.Status)
			a.printHeaders(w, "↓", "", ex.ResponseHeaders)
			return w.Flush()
		},
		Frame: func(ex *captures.Exchange, call decode.Call, f *decode.Frame) error {
			turn(ex.ID)
			a.printFrame(w, &decode.Exchange{Exchange: *ex, Call: call}, f, seen.of(ctx, ex, call), o)
			return w.Flush()
		},
		Ended: func(ex *captures.Exchange, s *decode.Stream) error {
			turn(ex.ID)
			a.printHeaders(w, "↓", "trailer ", ex.ResponseTrailers)
			code, message := s.Verdict()
			fmt.Fprintf(w, "%s\n", a.out.Dim(fmt.Sprintf("%s · %s · %s", outcomeWord(ex.Outcome), term.Clean(code), ex.Duration.Round(10*time.Microsecond))))
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
	if store, err := openCapture(s.file); err == nil {
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

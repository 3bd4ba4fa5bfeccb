package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"unwire/captures"
	"unwire/cmd/internal/term"
	"unwire/decode"
	"unwire/schema/check"
	"unwire/schema/infer"
)

// A gatherer makes evidence of many inputs, on all cores: each worker has
// evidence of its own, and merging gives that of all, whatever the order.
type gatherer struct {
	a       *app
	root    string // of messages in files
	raw     bool
	named   bool           // the root has a name of the user's
	checker *check.Checker // for --into; nil without
	file    string         // the capture that is being read, for the checker's addresses
	piece   bool

	total   *infer.Evidence
	added   int64 // messages of files
	started time.Time
	bytes   atomic.Int64
	frames  atomic.Int64
	others  int64        // calls of RPCs whose messages are JSON
	other   string       // the address of one of them
	next    atomic.Int64 // when progress is said next, in nanoseconds from started
}

func (a *app) newGatherer(root string, raw bool) *gatherer {
	g := &gatherer{a: a, root: root, raw: raw, total: infer.NewEvidence(), started: time.Now()}
	g.next.Store(int64(progressEvery))
	return g
}

// progress says on a terminal, from time to time, how far it is.
func (g *gatherer) progress(frames, size int64) {
	n, all := g.frames.Add(frames), g.bytes.Add(size)
	at := time.Since(g.started)
	if next := g.next.Load(); g.a.err.TTY && int64(at) > next && g.next.CompareAndSwap(next, int64(at+progressEvery)) {
		g.a.say("unwire: %s, %.1f MB, %.0f MB/s", counted(n, "message"), float64(all)/1e6, float64(all)/1e6/at.Seconds())
	}
}

// Frames leave garbage and hardly anything else: more of it may lie than usual, up
// to a bound for all memory.
const (
	inferGarbage = 400 // percent of what lives
	inferMemory  = 512 << 20
)

// collectLess collects garbage less often while the heap is below memory bytes,
// unless GOGC is set, and returns a function that undoes it.
func collectLess(memory int64) func() {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	unlimit, percent := limitMemory(memory), debug.SetGCPercent(inferGarbage)
	return func() {
		debug.SetGCPercent(percent)
		unlimit()
	}
}

// gather enters all inputs. Where the context ends it returns its error, and
// what was read until then stays in total.
func (g *gatherer) gather(ctx context.Context, inputs []string) error {
	defer collectLess(inferMemory)()
	if g.raw {
		return g.gatherFiles(ctx, inputs)
	}
	var files []string
	for _, name := range inputs {
		ev, err := readEvidenceFile(name)
		if err != nil {
			return err
		}
		if ev == nil {
			files = append(files, name)
		} else if err := g.merge(name, ev); err != nil {
			return err
		}
	}
	if g.named && len(files) == len(inputs) {
		return usagef("--root names the message of --raw: methods name their own")
	}
	for _, name := range files {
		if _, err := os.Stat(parseAddress(name).File); err != nil && name != "-" {
			return err // now, and not when the others have been read for hours
		}
	}
	var damage error
	for _, name := range files {
		err := g.gatherCapture(ctx, name)
		if err != nil && !errors.Is(err, captures.ErrDamaged) {
			return err
		}
		damage = errors.Join(damage, err)
	}
	return damage
}

// merge merges the evidence in a file, once.
func (g *gatherer) merge(name string, ev *infer.Evidence) error {
	if g.checker != nil {
		return usagef("--into needs the traffic itself: %s is evidence", name)
	}
	switch share := g.total.Shared(ev); {
	case share == 1:
		g.a.say("unwire: %s: all of it is counted already", inputName(name))
		return nil
	case share > 0:
		g.a.say("unwire: warning: %s: %.0f %% of its inputs are counted already and now count twice", inputName(name), 100*share)
	}
	g.total.Merge(ev)
	return nil
}

// readEvidenceFile reads a file of evidence; of another file it returns nil.
func readEvidenceFile(name string) (*infer.Evidence, error) {
	if name == "-" {
		return nil, nil
	}
	f, err := os.Open(parseAddress(name).File)
	if err != nil {
		return nil, nil // said where it is read
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	head := make([]byte, evidenceHead)
	n, _ := io.ReadFull(f, head)
	if head = head[:n]; !maybeEvidence(head) {
		return nil, nil
	}
	rest, err := io.ReadAll(io.LimitReader(f, maxInput))
	if err != nil {
		return nil, err
	}
	return parseEvidence(name, append(head, rest...))
}

// evidenceHead is how many bytes tell that a file may be evidence.
const evidenceHead = 64

// maybeEvidence looks at the beginning of a file.
func maybeEvidence(head []byte) bool {
	head, found := bytes.CutPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{"))
	head = bytes.TrimLeft(head, " \t\r\n")
	return found && (bytes.HasPrefix(head, []byte(`"unwire_evidence"`)) || bytes.HasPrefix(head, []byte(`"v"`)))
}

// parseEvidence reads evidence; of some other JSON it returns nil.
func parseEvidence(name string, data []byte) (*infer.Evidence, error) {
	if !maybeEvidence(data[:min(len(data), evidenceHead)]) || !bytes.Contains(data, []byte(`"unwire_evidence"`)) {
		return nil, nil
	}
	ev, err := infer.ReadEvidence(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return ev, nil
}

// A remark is what is said of one input, kept until all before it are read.
type remark struct {
	text     string
	err      error
	evidence *infer.Evidence // it was no message
}

// fileBatch is how many files one worker takes at a time.
const fileBatch = 64

// gatherFiles enters files that hold one message each. What is no message is said
// and left out, unless nothing else is there.
func (g *gatherer) gatherFiles(ctx context.Context, names []string) error {
	remarks := make([]remark, len(names))
	var next atomic.Int64
	var added atomic.Int64
	workers := min(runtime.GOMAXPROCS(0), 1+len(names)/fileBatch)
	parts := make([]*infer.Evidence, workers)
	var wg sync.WaitGroup
	for w := range workers {
		parts[w] = infer.NewEvidence()
		wg.Go(func() {
			for ctx.Err() == nil {
				from := int(next.Add(fileBatch)) - fileBatch
				if from >= len(names) {
					return
				}
				for i := from; i < min(from+fileBatch, len(names)) && ctx.Err() == nil; i++ {
					ok := false
					if ok, remarks[i] = g.addFile(parts[w], names[i]); ok {
						added.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	for i, r := range remarks {
		if r.err != nil {
			return r.err
		}
		if r.text != "" {
			g.a.say("%s", r.text)
		}
		if r.evidence == nil {
			continue
		}
		if err := g.merge(names[i], r.evidence); err != nil {
			return err
		}
		g.added++
	}
	for _, part := range parts {
		g.total.Merge(part)
	}
	g.added += added.Load()
	if err := ctx.Err(); err != nil {
		return err
	}
	if g.added == 0 {
		return fail(exitInput, errors.New("none of the files is a serialized message"), "")
	}
	return nil
}

func (g *gatherer) addFile(ev *infer.Evidence, name string) (bool, remark) {
	data, err := g.a.readInput(name)
	if err != nil {
		return false, remark{err: err}
	}
	if other, err := parseEvidence(name, data); err != nil || other != nil {
		return false, remark{err: err, evidence: other}
	}
	if err := ev.Add(g.root, data); err != nil {
		return false, remark{text: fmt.Sprintf("unwire: left out: %s: %v", inputName(name), err)}
	}
	ev.AddSource(fileHash(name, data))
	g.progress(1, int64(len(data)))
	return true, remark{}
}

// fileHash is of a file's place and content: the same message in two files
// counts twice.
func fileHash(name string, data []byte) uint64 {
	if abs, err := filepath.Abs(name); err == nil && name != "-" {
		name = abs
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name + "\x00"))
	_, _ = h.Write(data)
	return h.Sum64()
}

// exchangeHash is of what no two exchanges share.
func exchangeHash(ex *decode.Exchange) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(ex.Started.UnixNano())))
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(ex.ID)))
	_, _ = h.Write([]byte(ex.Method + " " + ex.URL))
	return h.Sum64()
}

// gatherCapture enters every exchange of a capture, or the one that name says: each
// core reads, decodes and makes evidence of exchanges of its own.
func (g *gatherer) gatherCapture(ctx context.Context, name string) error {
	addr := parseAddress(name)
	g.file = addr.File
	if g.checker != nil {
		return g.checkCapture(ctx, name)
	}
	store, err := openCapture(addr.File)
	if err != nil {
		return err
	}
	defer store.Close()
	var all *decode.Conversations
	if addr.Exchange != 0 {
		all, err = decode.FindConversation(ctx, store, addr.Exchange)
	} else {
		all, err = decode.FindConversations(ctx, store)
	}
	if err != nil && (addr.Exchange != 0 || !errors.Is(err, captures.ErrDamaged)) {
		return err
	}
	damage := err

	type job struct {
		addr address
		at   int
	}
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	jobs := make(chan job)
	readers := make([]*captureReader, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for w := range readers {
		r := &captureReader{g: g, name: name, evidence: infer.NewEvidence(), said: map[int][]string{}}
		readers[w] = r
		wg.Go(func() {
			for j := range jobs {
				err := r.read(reading, store, all, j.addr, j.at)
				switch {
				case err == nil:
				case errors.Is(err, captures.ErrDamaged):
					r.damage = cmp.Or(r.damage, err)
				default:
					stop(err) // of several the first
				}
			}
		})
	}
	count := 0
	give := func(addr address) {
		select {
		case jobs <- job{addr, count}:
			count++
		case <-reading.Done():
		}
	}
	if addr.Exchange != 0 {
		give(addr)
	} else {
		for rec, err := range store.Exchanges(reading) {
			if errors.Is(err, captures.ErrDamaged) {
				damage = cmp.Or(damage, err)
				break // it is the last
			}
			if err != nil {
				stop(err)
				break
			}
			give(address{Exchange: rec.ID})
		}
	}
	close(jobs)
	wg.Wait()
	for at := range count {
		for _, r := range readers {
			for _, text := range r.said[at] {
				g.a.say("%s", text)
			}
		}
	}
	first := int64(0)
	for _, r := range readers {
		g.total.Merge(r.evidence)
		if g.others += r.others; r.other > 0 && (first == 0 || r.other < first) {
			first = r.other
		}
		damage = cmp.Or(damage, r.damage)
	}
	if first > 0 && g.other == "" {
		g.other = address{File: addr.File, Exchange: first, Frame: -1}.String()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return cmp.Or(context.Cause(reading), damage)
}

// A captureReader makes evidence of some of a capture's exchanges.
type captureReader struct {
	g        *gatherer
	name     string
	evidence *infer.Evidence
	said     map[int][]string // by the exchange's place in the capture
	damage   error            // the first that it met
	others   int64            // calls whose messages are JSON
	other    int64            // the first of them
}

// read enters an exchange of the capture, and the conversation that it is the head of.
func (r *captureReader) read(ctx context.Context, store *captures.Store, all *decode.Conversations, addr address, at int) error {
	o := decode.Options{NoInner: true}
	piece := all.Head(addr.Exchange) == addr.Exchange && !addr.Part
	if piece {
		c, err := all.Decode(ctx, store, addr.Exchange, o)
		if err != nil {
			return err
		}
		size := int64(0)
		for i := range c.Frames {
			size += int64(len(c.Frames[i].Data))
		}
		r.g.progress(int64(len(c.Frames)), size)
		r.end(c.Exchange, r.evidence.AddExchange(c.Exchange), false, at)
	}
	var call *infer.Call
	frames, size := int64(0), int64(0)
	ex, err := decode.EachFrame(ctx, store, addr.Exchange, o, func(ex *decode.Exchange, f *decode.Frame) error {
		if call == nil {
			call = r.evidence.Begin(ex)
		}
		call.Add(ex, f)
		size += int64(len(f.Data))
		if frames++; frames < framesAtOnce {
			return nil
		}
		r.g.progress(frames, size)
		frames, size = 0, 0
		return ctx.Err()
	})
	r.g.progress(frames, size)
	if ex == nil || err != nil && call == nil && !errors.Is(err, captures.ErrDamaged) {
		return err
	}
	if call == nil {
		call = r.evidence.Begin(ex)
	}
	r.end(ex, call.End(ex), piece, at)
	return err
}

// framesAtOnce is how many frames are read until it is seen whether to go on.
const framesAtOnce = 512

// end says what of an exchange could not be read, and remembers it.
func (r *captureReader) end(ex *decode.Exchange, err error, piece bool, at int) {
	if ex.Err != nil && !piece { // of a conversation, with what its pieces have to say
		r.remark(at, "unwire: "+term.CleanText(ex.Err.Error()))
	}
	if err != nil {
		r.remark(at, fmt.Sprintf("unwire: %s#%d: %v", r.name, ex.ID, err))
	}
	r.evidence.AddSource(exchangeHash(ex))
	if !piece && ex.Service != "" && ex.RPC != "" && ex.Codec == "json" {
		if r.others++; r.other == 0 || ex.ID < r.other {
			r.other = ex.ID
		}
	}
}

func (r *captureReader) remark(at int, text string) {
	if len(r.said) < maxRemarks {
		r.said[at] = append(r.said[at], text)
	}
}

// othersHint is for calls in JSON.
const othersHint = "JSON has names and no field numbers: 'unwire align F.uwc' makes definitions of calls in both forms, 'unwire schema check' holds JSON against them"

// othersText counts the calls in JSON.
func (g *gatherer) othersText() string {
	return fmt.Sprintf("%s in JSON, such as %s", counted(g.others, "call"), g.other)
}

// sayOthers says how many calls nothing was inferred of.
func (g *gatherer) sayOthers() {
	if g.others > 0 {
		g.a.say("unwire: left out: %s", g.othersText())
		g.a.say("unwire: hint: %s", othersHint)
	}
}

// checkCapture checks every exchange of a capture against definitions.
func (g *gatherer) checkCapture(ctx context.Context, name string) error {
	empty := true
	err := eachExchange(ctx, name, func(ex *decode.Exchange, piece bool) error {
		if empty = false; !piece {
			g.a.remark(ex)
		}
		if g.piece = piece; piece {
			decode.DropJoined(ex)
		}
		g.checker.Add(ex)
		return ctx.Err()
	})
	if err == nil && empty {
		g.a.say("unwire: warning: %s holds no exchanges", term.Clean(name))
	}
	return err
}

// maxRemarks bounds what is said of the exchanges of one capture.
const maxRemarks = 10_000

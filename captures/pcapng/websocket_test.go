package pcapng_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"unwire/captures"
	"unwire/captures/internal/samples"
	"unwire/captures/store"
)

// connections are the exchanges without HTTP as packets keep them, in the order of time:
// a message is whole, when its last byte came. WebSockets whose handshakes are not there
// and connections without a byte are not in packets, and a handshake of which no WebSocket
// was recorded looks like one with an empty WebSocket.
func connections(t testing.TB, s *store.Store) []string {
	t.Helper()
	var out []string
	for _, w := range samples.Renumbered(samples.Read(t, s)) {
		switch {
		case w.Transport == captures.HTTP, w.Transport == captures.WebSocket && !isOpened(w), w.Transport == captures.WebSocket && len(messages(w.Chunks)) == 0, len(w.Chunks) == 0:
			continue
		}
		line := fmt.Sprintf("%s %s at %s", w.Transport, w.URL, w.Started)
		if w.Outcome != captures.Incomplete {
			line += " " + string(w.Outcome)
		}
		out = append(out, line)
		if w.Transport == captures.WebSocket {
			out = append(out, messages(w.Chunks)...)
			continue
		}
		for _, c := range w.Chunks {
			out = append(out, fmt.Sprintf("%s %v %x", c.Dir, c.T, c.Data))
		}
	}
	return out
}

func isOpened(w samples.Whole) bool {
	return slices.ContainsFunc(w.Relations, func(r captures.Relation) bool { return r.Kind == captures.HandshakeOf })
}

func messages(chunks []captures.Chunk) []string {
	var out []string
	var open [2]captures.Chunk
	var goesOn [2]bool
	for _, c := range chunks {
		switch whole := &open[c.Dir]; {
		case c.Opcode.Kind() >= captures.OpClose:
			out = append(out, fmt.Sprintf("%s %v %d %x", c.Dir, c.T, c.Opcode, c.Data))
			continue
		case goesOn[c.Dir]:
			whole.Data = append(whole.Data, c.Data...)
			whole.Opcode |= c.Opcode & captures.OpFinal
			whole.T = c.T
		default:
			*whole = c
			whole.Data = slices.Clone(c.Data)
		}
		if goesOn[c.Dir] = c.Opcode&captures.OpFinal == 0; !goesOn[c.Dir] {
			out = append(out, fmt.Sprintf("%s %v %d %x", c.Dir, open[c.Dir].T, open[c.Dir].Opcode, open[c.Dir].Data))
		}
	}
	for dir, c := range open {
		if goesOn[dir] && len(c.Data) > 0 {
			out = append(out, fmt.Sprintf("%s, cut off: %d %x", c.Dir, c.Opcode, c.Data))
		}
	}
	return out
}

// TestTransports: WebSockets, over HTTP/1.1 and HTTP/2, and connections without HTTP come
// back from packets.
func TestTransports(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "unwire-pcapng-")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		from, err := store.Create(filepath.Join(dir, "a.uwc"), store.Options{KeepSecrets: true})
		if err != nil {
			rt.Fatal(err)
		}
		defer from.Close()
		samples.RecordTransports(rt, from)
		if err := from.Flush(context.Background()); err != nil {
			rt.Fatal(err)
		}
		to, conns, done := there(t, from, dir)
		defer to.Close()
		if diff := gocmp.Diff(connections(t, from), connections(t, to)); diff != "" {
			rt.Fatalf("exported (-), imported (+):\n%s\n%+v", diff, conns)
		}
		noHandshake := 0
		for _, w := range samples.Read(t, from) {
			if w.Transport == captures.WebSocket && !isOpened(w) {
				noHandshake++
			}
		}
		if done.NoHandshake != noHandshake {
			rt.Errorf("%+v: %d WebSockets have no handshake", done, noHandshake)
		}
	})
}

package pcap

import (
	"bytes"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"unwire/captures"
	"unwire/captures/need"
)

// TestTsharkAgrees lets tshark decode the same packets: the DATA of every
// stream and direction must be the same bytes.
func TestTsharkAgrees(t *testing.T) {
	t.Parallel()
	tshark := need.Program(t, "tshark", "tshark", "--version")
	for name, version := range map[string]uint16{"tls12": tls.VersionTLS12, "tls13": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			s, roots := startStandin(t)
			p := new(tap)
			c := tapped(t, p, roots, version, nil)
			turn(t, c, s.URL(), "What does Backoff do?")
			turn(t, c, s.URL(), strings.Repeat("A long question. ", 2000))
			file := pcapng(t, linkEthernet, repeated(p.packets(t, linkEthernet)), p.keys.Bytes())
			got := importFile(t, file, nil)
			name := filepath.Join(t.TempDir(), "x.pcapng")
			if err := os.WriteFile(name, file, 0o600); err != nil {
				t.Fatal(err)
			}
			_, port, _ := strings.Cut(strings.TrimPrefix(s.URL(), "https://"), ":")
			cmd := exec.Command(tshark, "-r", name, "-2", "-d", "tcp.port=="+port+",tls", "-Y", "http2.data.data",
				"-T", "fields", "-E", "separator=;", "-e", "tcp.dstport", "-e", "http2.streamid", "-e", "http2.type", "-e", "http2.length", "-e", "http2.data.data")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("tshark: %v\n%s", err, stderr.String())
			}
			want := tsharkData(t, string(out), port)
			if len(want) != 4 {
				t.Fatalf("tshark found %d directions of streams:\n%s", len(want), out)
			}
			for i, ex := range got.exchanges {
				for _, dir := range []captures.Direction{captures.Up, captures.Down} {
					have := bodyOf(t, got.store, ex.ID, dir)
					if w := want[streamSide{1 + 2*i, dir}]; len(w) == 0 || !bytes.Equal(have, w) {
						t.Errorf("stream %d %s: %d bytes, tshark has %d", 1+2*i, dir, len(have), len(w))
					}
				}
			}
		})
	}
}

type streamSide struct {
	id  int
	dir captures.Direction
}

// tsharkData reads lines of port;streams;types;lengths;data, where each of the
// lists has commas: a packet may have several frames. DATA without bytes has
// no data; behind a stream's last DATA, its whole body may stand once more.
func tsharkData(t *testing.T, out, port string) map[streamSide][]byte {
	all := map[streamSide][]byte{}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), ";")
		if len(f) != 5 {
			t.Fatalf("tshark: %q", line)
		}
		dir := captures.Down
		if f[0] == port {
			dir = captures.Up
		}
		ids, types, lengths, data := strings.Split(f[1], ","), strings.Split(f[2], ","), strings.Split(f[3], ","), strings.Split(f[4], ",")
		for i, kind := range types {
			id, err1 := strconv.Atoi(ids[i])
			length, err2 := strconv.Atoi(lengths[i])
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			if kind != "0" || length == 0 {
				continue
			}
			for len(data) > 0 && len(data[0]) != 2*length {
				data = data[1:]
			}
			if len(data) == 0 {
				t.Fatalf("tshark: no data of a DATA frame in %q", line)
			}
			b, err := hex.DecodeString(data[0])
			if err != nil {
				t.Fatal(err)
			}
			data = data[1:]
			key := streamSide{id, dir}
			all[key] = append(all[key], b...)
		}
	}
	return all
}

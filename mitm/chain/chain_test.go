package chain

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// links announces listeners, each of which goes to the address at an index of all; -1 is
// elsewhere.
func links(t *testing.T, to ...int) []*net.TCPAddr {
	t.Helper()
	var addrs []*net.TCPAddr
	for range to {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
		addrs = append(addrs, ln.Addr().(*net.TCPAddr))
	}
	for i, n := range to {
		server := "127.0.0.1:1"
		if n >= 0 {
			server = addrs[n].String()
		}
		l, err := Announce(addrs[i], server)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	}
	return addrs
}

// shortFolder is a folder whose name is not too long for sockets.
func shortFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "chain")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return dir
}

func TestIsCycle(t *testing.T) {
	shortFolder(t)
	for name, c := range map[string]struct {
		to   []int
		want bool
	}{
		"one that is its own server":     {[]int{0}, true},
		"two that point at each other":   {[]int{1, 0}, true},
		"three in a ring":                {[]int{1, 2, 0}, true},
		"one before two in a ring":       {[]int{1, 2, 1}, true},
		"two in a row":                   {[]int{1, -1}, false},
		"two before the same server":     {[]int{2, 2, -1}, false},
		"many in a row":                  {[]int{1, 2, 3, 4, 5, 6, 7, 8, 9, -1}, false},
		"one before a server":            {[]int{-1}, false},
		"one beside others in a ring":    {[]int{-1, 2, 1}, false},
		"one before a ring of ten of it": {[]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 0}, true},
	} {
		if got := IsCycle(t.Context(), links(t, c.to...)[0]); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if IsCycle(t.Context(), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}) {
		t.Error("an address without a listener")
	}
}

// TestNames: a server is given by name, and listeners accept at every address.
func TestNames(t *testing.T) {
	shortFolder(t)
	first, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second := links(t, -1)[0]
	_, port, _ := net.SplitHostPort(first.Addr().String())
	_, back, _ := net.SplitHostPort(second.String())
	for addr, server := range map[net.Addr]string{first.Addr(): "localhost:" + back, second: "localhost:" + port} {
		l, err := Announce(addr, server)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	if !IsCycle(t.Context(), second) {
		t.Error("not found by name")
	}
	if IsCycle(t.Context(), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: first.Addr().(*net.TCPAddr).Port}) {
		t.Error("a port of another machine")
	}
}

// TestLeftOver: a link that is closed, or whose process was killed, is none.
func TestLeftOver(t *testing.T) {
	dir := shortFolder(t)
	addr := links(t, 0)[0]
	path := socketOf(folder(), addr.AddrPort())
	l, err := Announce(addr, addr.String())
	if err != nil {
		t.Fatal(err)
	}
	if !IsCycle(t.Context(), addr) {
		t.Fatal("not found")
	}
	l.listener.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
	if _, err := os.Lstat(path); err != nil || IsCycle(t.Context(), addr) {
		t.Errorf("a socket without a process counts, %v", err)
	}
	if l, err = Announce(addr, addr.String()); err != nil || !IsCycle(t.Context(), addr) {
		t.Fatal("it is not announced again", err)
	}
	_ = l.Close()
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is still there")
	}

	// A socket that does not answer is not waited for.
	silent, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	began := time.Now()
	if IsCycle(t.Context(), addr) || time.Since(began) > 10*askTimeout {
		t.Errorf("a silent socket: %v", time.Since(began))
	}

	// A folder that others can write to is not used.
	if err := os.Chmod(filepath.Join(dir, filepath.Base(folder())), 0o770); err != nil {
		t.Fatal(err)
	}
	if _, err := Announce(addr, "x:1"); err == nil {
		t.Error("a folder of others is used")
	}
}

func BenchmarkIsCycle(b *testing.B) {
	to := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	for b.Loop() {
		IsCycle(b.Context(), to)
	}
}

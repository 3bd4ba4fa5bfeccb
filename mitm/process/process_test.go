package process

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"unwire/captures"
)

const dialVariable = "UNWIRE_TEST_DIAL"

// TestMain is also a program that connects somewhere and waits for the end of stdin.
func TestMain(m *testing.M) {
	if addr := os.Getenv(dialVariable); addr != "" {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = conn.Close()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// memory keeps the exchanges that are recorded.
type memory struct {
	captures.Recording // for what is not called here

	mu    sync.Mutex
	ex    captures.Exchange
	calls []string
	ended chan struct{}
}

func (m *memory) Begin(ex captures.Exchange) (captures.Recording, error) {
	m.ex, m.ended = ex, make(chan struct{})
	return m, nil
}

func (m *memory) Process(p captures.Process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ex.Process = p
	m.calls = append(m.calls, "process")
}

func (m *memory) End(o captures.Outcome, text string) { m.EndAt(0, o, text) }

func (m *memory) EndAt(_ time.Duration, o captures.Outcome, _ string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ex.Outcome = o
	m.calls = append(m.calls, "end")
	close(m.ended)
}

func accept(t *testing.T, network, addr string, connect func(addr string)) net.Conn {
	t.Helper()
	ln, err := net.Listen(network, addr)
	if err != nil {
		t.Skipf("no %s here: %v", network, err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go connect(ln.Addr().String())
	conn, err := ln.Accept()
	check(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T any](t testing.TB, want, got T) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func needLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("processes are found on Linux only")
	}
}

// TestRecorder has the program recorded, also of an exchange that ends at once.
func TestRecorder(t *testing.T) {
	t.Parallel()
	needLinux(t)
	self, err := os.Executable()
	check(t, err)
	for _, listen := range [][2]string{{"tcp4", "127.0.0.1:0"}, {"tcp6", "[::1]:0"}, {"tcp", ":0"}} {
		t.Run(listen[0]+listen[1], func(t *testing.T) {
			t.Parallel()
			f := NewFinder()
			defer f.Close()
			var pid int
			started := make(chan struct{})
			conn := accept(t, listen[0], listen[1], func(addr string) {
				_, port, _ := net.SplitHostPort(addr)
				if listen[0] == "tcp" { // by IPv4 to a socket of IPv6
					addr = "127.0.0.1:" + port
				}
				cmd := exec.Command(self)
				cmd.Env = append(os.Environ(), dialVariable+"="+addr)
				in, err := cmd.StdinPipe()
				if err != nil || cmd.Start() != nil {
					panic("the program was not started")
				}
				t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
				pid = cmd.Process.Pid
				close(started)
			})
			<-started

			uid, err := f.User(conn)
			check(t, err)
			equal(t, os.Geteuid(), int(uid))
			equal(t, true, f.IsDescendant(conn))

			m := new(memory)
			rec, err := f.Recorder(conn, nil, m).Begin(captures.Exchange{
				Started:        time.Now(),
				RequestHeaders: captures.Headers{{Name: "User-Agent", Value: "connect-es/2.0.0"}},
			})
			check(t, err)
			equal(t, "connect-es", m.ex.Process.Client) // known at once
			rec.End(captures.Complete, "")
			f.Wait()
			<-m.ended
			want := captures.Process{PID: pid, Name: filepath.Base(self), Client: "connect-es", Version: "2.0.0"}
			equal(t, want, m.ex.Process)
			equal(t, captures.Complete, m.ex.Outcome)

			// Later exchanges know it from the beginning.
			_, err = f.Recorder(conn, nil, m).Begin(captures.Exchange{})
			check(t, err)
			f.Wait()
			equal(t, pid, m.ex.Process.PID)
		})
	}
}

// target is memory as a target of imports.
type target struct {
	captures.Target // for what is not called here

	*memory
}

func (t target) Begin(ex captures.Exchange) (captures.Recording, error) { return t.memory.Begin(ex) }

// TestTable has programs recorded with exchanges that are made of packets later.
func TestTable(t *testing.T) {
	t.Parallel()
	needLinux(t)
	f := NewFinder()
	defer f.Close()
	table := NewTable(f)
	conn := accept(t, "tcp4", "127.0.0.1:0", func(addr string) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
		}
	})
	table.Add(conn, nil)
	f.Wait()
	client, server := conn.RemoteAddr().String(), conn.LocalAddr().String()
	for _, c := range []struct {
		client, server string
		pid            int
	}{{client, server, os.Getpid()}, {server, client, 0}, {"10.0.0.1:1", server, 0}} {
		m := new(memory)
		to := table.Target(target{memory: m})
		rec, err := to.Begin(captures.Exchange{Client: c.client, Server: c.server, RequestHeaders: captures.Headers{{Name: "User-Agent", Value: "a/1"}}})
		check(t, err)
		rec.EndAt(time.Second, captures.Complete, "")
		equal(t, c.pid, m.ex.Process.PID)
		equal(t, "a", m.ex.Process.Client)
		equal(t, []string{"end"}, m.calls)
	}

	// Connections of the same addresses, and too many, are forgotten.
	for i := range maxTable + 10 {
		table.Add(&fakeConn{port: i}, nil)
		table.Add(&fakeConn{port: i}, nil)
	}
	equal(t, [2]int{maxTable, maxTable}, [2]int{len(table.known), len(table.oldest)})
}

// A fakeConn is a connection of which nothing but the addresses is known.
type fakeConn struct {
	net.Conn

	port int
}

func (c *fakeConn) LocalAddr() net.Addr  { return &net.UnixAddr{Name: "server"} }
func (c *fakeConn) RemoteAddr() net.Addr { return &net.UnixAddr{Name: fmt.Sprint(c.port)} }

// TestUnknown is for connections whose other end is not here, and for a closed Finder.
func TestUnknown(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	f := NewFinder()
	_, err := f.User(a)
	equal(t, true, err != nil && !errors.Is(err, ErrGone))
	m := new(memory)
	rec, err := f.Recorder(a, nil, m).Begin(captures.Exchange{})
	check(t, err)
	rec.End(captures.Complete, "")
	equal(t, captures.Process{}, m.ex.Process)
	equal(t, []string{"end"}, m.calls)
	f.Close()

	conn := accept(t, "tcp4", "127.0.0.1:0", func(addr string) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
		}
	})
	_, err = f.User(conn)
	equal(t, true, err != nil) // closed
}

// TestGone asks for a socket that is closed.
func TestGone(t *testing.T) {
	t.Parallel()
	needLinux(t)
	f := NewFinder()
	defer f.Close()
	conn := accept(t, "tcp4", "127.0.0.1:0", func(addr string) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
	})
	_, _ = io.Copy(io.Discard, conn) // until it is closed
	_, err := f.User(conn)
	equal(t, true, errors.Is(err, ErrGone))
	equal(t, false, f.IsDescendant(conn))
}

// TestOwnConnections finds many connections of one process in one go.
func TestOwnConnections(t *testing.T) {
	t.Parallel()
	needLinux(t)
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	check(t, err)
	defer ln.Close()
	f := NewFinder()
	defer f.Close()
	const n = 300
	all := make([]*memory, n)
	for i := range all {
		client, err := net.Dial("tcp", ln.Addr().String())
		check(t, err)
		defer client.Close()
		conn, err := ln.Accept()
		check(t, err)
		defer conn.Close()
		all[i] = new(memory)
		rec, err := f.Recorder(conn, nil, all[i]).Begin(captures.Exchange{})
		check(t, err)
		rec.End(captures.Complete, "")
	}
	f.Wait()
	for _, m := range all {
		equal(t, os.Getpid(), m.ex.Process.PID)
		equal(t, captures.Complete, m.ex.Outcome)
	}
}

func BenchmarkConnection(b *testing.B) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	check(b, err)
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	check(b, err)
	defer client.Close()
	conn, err := ln.Accept()
	check(b, err)
	defer conn.Close()
	f := NewFinder()
	defer f.Close()
	b.Run("user", func(b *testing.B) {
		for b.Loop() {
			f.User(conn)
		}
	})
	b.Run("process", func(b *testing.B) {
		for b.Loop() {
			f.Recorder(conn, nil, new(memory))
			f.Wait()
		}
	})
	b.Run("processes", func(b *testing.B) { // that were not found before
		for b.Loop() {
			f := NewFinder()
			f.Recorder(conn, nil, new(memory))
			f.Close()
		}
	})
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"unwire/captures"
	"unwire/captures/need"
	"unwire/captures/store"
)

// maxBehind is by how much a passive capture may be behind the wire.
const maxBehind = 2 * time.Second

// tickingServer sends messages, each with its number and the time, until the client
// goes away.
func tickingServer(t *testing.T, http2 bool, perSecond int) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		tick := time.NewTicker(time.Second / time.Duration(perSecond))
		defer tick.Stop()
		for n := 0; r.Context().Err() == nil; n++ {
			if _, err := fmt.Fprintf(w, "data: %d %d\n\n", n, time.Now().UnixNano()); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-tick.C:
			case <-r.Context().Done():
			}
		}
	}))
	s.EnableHTTP2 = http2
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// A tickLog is what is read of a ticking server in a capture.
type tickLog struct {
	next   map[int64]int // the number that is expected, by exchange
	tail   map[int64][]byte
	delays []time.Duration
	last   time.Time // of a message
	wrong  []string
}

var tickPattern = regexp.MustCompile(`^data: (\d+) (\d+)\n\n`)

// add reads the messages of a chunk that is seen now.
func (l *tickLog) add(c captures.Chunk, now time.Time) {
	if l.next == nil {
		l.next, l.tail = map[int64]int{}, map[int64][]byte{}
	}
	data := append(l.tail[c.Exchange], c.Data...)
	for {
		m := tickPattern.FindSubmatch(data)
		if m == nil {
			break
		}
		n, _ := strconv.Atoi(string(m[1]))
		nanos, _ := strconv.ParseInt(string(m[2]), 10, 64)
		if n != l.next[c.Exchange] {
			l.wrong = append(l.wrong, fmt.Sprintf("exchange %d: message %d, want %d", c.Exchange, n, l.next[c.Exchange]))
		}
		l.next[c.Exchange] = n + 1
		sent := time.Unix(0, nanos)
		l.delays = append(l.delays, now.Sub(sent))
		if sent.After(l.last) {
			l.last = sent
		}
		data = data[len(m[0]):]
	}
	l.tail[c.Exchange] = data
}

// quantiles are the median, the 99th percentile and the largest delay.
func quantiles(list []time.Duration) (median, most99, most time.Duration) {
	list = slices.Sorted(slices.Values(list))
	if len(list) == 0 {
		return 0, 0, 0
	}
	return list[len(list)/2], list[len(list)*99/100], list[len(list)-1]
}

// passiveClients is a passive capture of n curls that read a ticking server.
func passiveClients(t *testing.T, s *secretRun, server *httptest.Server, n, seconds int) (cmd *exec.Cmd, said *bytes.Buffer) {
	t.Helper()
	curl := need.Curl(t, "HTTP2", "OpenSSL")
	script := fmt.Sprintf(`echo $$ >pid; for i in $(seq %d); do %s -sNk --max-time %d %s >/dev/null & done; wait`, n, curl, seconds, server.URL)
	cmd = s.command("capture", "-o", "live.uwc", "--passive", "--", "sh", "-c", script)
	said = new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, said
}

// skipWithoutNamespaces skips the test if a passive capture said that it cannot be made.
func skipWithoutNamespaces(t *testing.T, said string) {
	t.Helper()
	if strings.Contains(said, "passive capture: ") {
		t.Skipf("this system has no namespaces: %s", said)
	}
}

// openLive opens a capture that is being recorded, as soon as it is there.
func openLive(t *testing.T, file string) *store.Store {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		s, err := store.Open(file, store.ReadOptions{})
		if err == nil {
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestPassiveIsLive follows a passive capture of 500 messages a second: each is there
// within two seconds of its being sent.
func TestPassiveIsLive(t *testing.T) {
	const clients, perSecond, seconds = 5, 100, 5
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2=%v", http2), func(t *testing.T) {
			s := newSecretRun(t)
			cmd, said := passiveClients(t, s, tickingServer(t, http2, perSecond), clients, seconds)
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			var log tickLog
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			time.Sleep(time.Second) // until then namespaces may turn out to be missing
			skipWithoutNamespaces(t, firstLine(said, ended))
			live := openLive(t, filepath.Join(s.work, "live.uwc"))
			open := 0
			for e, err := range live.Follow(ctx, 20*time.Millisecond) {
				if err != nil {
					t.Fatal(err)
				}
				switch e.Kind {
				case captures.Began:
					open++
				case captures.Received:
					log.add(e.Chunk, time.Now())
				case captures.Ended:
					open--
				}
				if e.Kind == captures.Ended && open == 0 && len(log.next) == clients {
					break
				}
			}
			if err := <-ended; err != nil {
				var exit *exec.ExitError
				if !errors.As(err, &exit) {
					t.Fatalf("%v: %s", err, said)
				}
			}
			median, most99, most := quantiles(log.delays)
			t.Logf("%d messages of %d clients; behind by %v (median), %v (99 %%), %v (most)", len(log.delays), len(log.next), median, most99, most)
			if most > maxBehind || len(log.next) != clients || len(log.delays) < clients*perSecond*(seconds-1)*8/10 || len(log.wrong) > 0 {
				t.Errorf("%d messages, %d exchanges, %v behind, %q\n%s", len(log.delays), len(log.next), most, log.wrong, said)
			}
		})
	}
}

// firstLine returns what a command said, if it has ended already.
func firstLine(said *bytes.Buffer, ended chan error) string {
	select {
	case err := <-ended:
		ended <- err
		return said.String()
	default:
		return ""
	}
}

// TestPassiveKilledAtAnyTime kills passive captures at random times. What was made of the
// packets is in the capture, and the next command that reads it recovers the rest.
// UNWIRE_LONG=1 kills 100.
func TestPassiveKilledAtAnyTime(t *testing.T) {
	kills := 3
	if os.Getenv("UNWIRE_LONG") != "" {
		kills = 100
	}
	server := tickingServer(t, true, 100)
	var lost, lostAfterRecovery []time.Duration
	messages := 0
	for i := range kills {
		a, b, n := killAtRandom(t, server)
		lost, lostAfterRecovery = append(lost, a), append(lostAfterRecovery, b)
		messages += n
		if a > maxBehind || b > maxBehind {
			t.Errorf("kill %d: the capture ends %v before the kill, the recovered one %v", i, a, b)
		}
	}
	median, _, most := quantiles(lost)
	median2, _, most2 := quantiles(lostAfterRecovery)
	t.Logf("%d kills, %d messages; lost before the kill: %v (median), %v (most); after recovery %v, %v", kills, messages, median, most, median2, most2)
}

// killAtRandom kills a passive capture, and returns by how much its capture ends before the
// kill, and by how much when it was recovered.
func killAtRandom(t *testing.T, server *httptest.Server) (lost, lostAfterRecovery time.Duration, messages int) {
	t.Helper()
	s := newSecretRun(t)
	cmd, said := passiveClients(t, s, server, 3, 30)
	defer func() {
		if data, err := os.ReadFile(filepath.Join(s.work, "pid")); err == nil {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}()
	file := filepath.Join(s.work, "live.uwc")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if len(readTicks(t, file).next) == 3 {
			break
		}
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			skipWithoutNamespaces(t, said.String())
			t.Fatalf("nothing recorded: %s", said)
		}
	}
	time.Sleep(time.Duration(rand.Int64N(int64(1500 * time.Millisecond))))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	_ = cmd.Wait()

	// Nothing that reads the capture by itself finds more than what was made of the packets.
	log := readTicks(t, file)
	folders, _ := filepath.Glob(filepath.Join(s.work, "unwire-passive-*"))
	out, err := s.command("ls", "live.uwc").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "live.uwc is complete") {
		t.Errorf("%v: %s", err, out)
	}
	again := readTicks(t, file)
	for _, l := range []tickLog{log, again} {
		if len(l.next) != 3 || len(l.wrong) > 0 {
			t.Errorf("%d exchanges, %q\n%s", len(l.next), l.wrong, out)
		}
	}
	if len(folders) != 1 || len(again.delays) < len(log.delays) {
		t.Errorf("%d messages of %d in %q\n%s", len(again.delays), len(log.delays), folders, out)
	}
	for _, name := range append(folders, file+"-packets") {
		if _, err := os.Lstat(name); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	return killed.Sub(log.last), killed.Sub(again.last), len(again.delays)
}

// readTicks reads the messages in a capture; none if it cannot be read yet.
func readTicks(t *testing.T, file string) (log tickLog) {
	t.Helper()
	s, err := store.Open(file, store.ReadOptions{})
	if err != nil {
		return log
	}
	defer s.Close()
	for ex, err := range s.Exchanges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for c, err := range s.Chunks(t.Context(), ex.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			log.add(c, time.Now())
		}
	}
	return log
}

// mailServer speaks SMTP as far as curl needs it, which is first spoken to.
func mailServer(t *testing.T, ln net.Listener) string {
	t.Helper()
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(time.Minute))
				_, _ = io.WriteString(c, "220 mail\r\n")
				for lines := bufio.NewScanner(c); lines.Scan(); {
					answer := "250 ok\r\n"
					if strings.HasPrefix(lines.Text(), "QUIT") {
						answer = "221 bye\r\n"
						time.Sleep(toBeFound)
					}
					_, _ = io.WriteString(c, answer)
				}
			}()
		}
	}()
	return ln.Addr().String()
}

// toBeFound is how long a program lives at least whose process must be found. A program that has ended is not found, and
// on a busy machine the search begins late.
const toBeFound = 500 * time.Millisecond

// TestPassiveKinds records real clients whose servers ask for another hello, and whose
// protocol is not HTTP, with their processes.
func TestPassiveKinds(t *testing.T) {
	curl := need.Curl(t, "HTTP2", "OpenSSL")
	s := newSecretRun(t)
	retrying := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(toBeFound)
		_, _ = io.WriteString(w, "hello")
	}))
	retrying.EnableHTTP2 = true
	retrying.TLS = &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP384}}
	retrying.StartTLS()
	defer retrying.Close()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secure, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: retrying.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	mail, mails := mailServer(t, plain), mailServer(t, secure)
	script := fmt.Sprintf("%[1]s -sSk --http2 %[2]s/two && %[1]s -sSk --http1.1 %[2]s/one && %[1]s -sS smtp://%[3]s -X NOOP && %[1]s -sSk smtps://%[4]s -X NOOP",
		curl, retrying.URL, mail, mails)
	cmd := s.command("capture", "-o", "kinds.uwc", "--passive", "--", "sh", "-c", script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		skipWithoutNamespaces(t, string(out))
		t.Fatalf("%v: %s", err, out)
	}
	c, err := store.Open(filepath.Join(s.work, "kinds.uwc"), store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var got []string
	pids := map[int]bool{}
	for ex, err := range c.Exchanges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if ex.Process.Name != filepath.Base(curl) || ex.Process.PID == 0 || ex.Process.PID == cmd.Process.Pid || pids[ex.Process.PID] {
			t.Errorf("%s was recorded of process %+v, behind %v", ex.URL, ex.Process, pids)
		}
		if isHTTP := ex.HTTP != ""; isHTTP != (ex.Process.Client == "curl") {
			t.Errorf("%s was recorded of client %q", ex.URL, ex.Process.Client)
		}
		pids[ex.Process.PID] = true
		first := ""
		for chunk, err := range c.Chunks(t.Context(), ex.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			first = fmt.Sprintf("%s %q", chunk.Dir, chunk.Data)
			break
		}
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", ex.Method, ex.URL, ex.HTTP, ex.Outcome, first)))
	}
	want := []string{
		"GET " + retrying.URL + `/two 2 complete down "hello"`, "GET " + retrying.URL + `/one 1.1 complete down "hello"`,
		"tcp://" + mail + `  complete down "220 mail\r\n"`, "tls://" + mails + `  complete down "220 mail\r\n"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q\n%s", got, want, out)
	}
}

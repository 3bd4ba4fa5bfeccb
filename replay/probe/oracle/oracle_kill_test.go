package oracle_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
)

const childTarget, childJournal = "UNWIRE_PROBE_TARGET", "UNWIRE_PROBE_JOURNAL"

// TestMain is a probe of its own where a test wants one to kill.
func TestMain(m *testing.M) {
	if target := os.Getenv(childTarget); target != "" {
		if err := probeOnce(target, os.Getenv(childJournal)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func probeOnce(target, journal string) error {
	to, err := url.Parse(target)
	if err != nil {
		return err
	}
	j, err := os.OpenFile(journal, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer j.Close() //nolint:errcheck // each line was written
	res, err := oracle.Run(context.Background(), probe.Options{To: to, Method: call, Journal: j, Budget: 5000})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(res)
}

// A probe of more than a thousand requests that is killed again and again goes
// on where it was: what was answered is not asked again, but for what was on
// its way when it was killed, and the result is the same.
func TestKilledAgainAndAgain(t *testing.T) {
	m := newSchemaMaker(8)
	m.method("Call", 320, 1000, false)
	var (
		mu      sync.Mutex
		child   *exec.Cmd
		dead    bool
		asked   = map[[32]byte]int{} // and answered
		kills   int
		lost    int // of them, behind an answer
		r       = rand.New(rand.NewPCG(1, 2))
		next    int // requests until the child is killed; 0: it is not
		nowhere = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	)
	server := startConnect(t, m.files(t), func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			body, err := io.ReadAll(req.Body)
			if err != nil {
				nowhere(w, req)
			}
			req.Body = io.NopCloser(bytes.NewReader(body))
			mu.Lock()
			defer mu.Unlock()
			if dead {
				nowhere(w, req)
			}
			dies := false
			if next > 0 {
				next--
				dies = next == 0
			}
			if dies && r.IntN(2) == 0 {
				kills++
				dead = true
				child.Process.Kill() //nolint:errcheck // it is waited for
				nowhere(w, req)
			}
			asked[sha256.Sum256(body)]++
			h.ServeHTTP(w, req)
			if dies {
				kills++
				lost++
				dead = true
				http.NewResponseController(w).Flush() //nolint:errcheck // nobody may be there
				child.Process.Kill()                  //nolint:errcheck // it is waited for
			}
		})
	})
	run := func(journal string, until int) (out []byte, err error) {
		mu.Lock()
		child = exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childTarget+"="+server.url.String(), childJournal+"="+journal)
		child.Stderr = os.Stderr
		next, dead = until, false
		stdout, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		out, err = io.ReadAll(stdout)
		if err != nil {
			t.Fatal(err)
		}
		return out, child.Wait()
	}
	result := func(out []byte) (res probe.Result) {
		t.Helper()
		if err := json.Unmarshal(out, &res); err != nil {
			t.Fatal(err)
		}
		return res
	}
	dir := t.TempDir()
	out, err := run(filepath.Join(dir, "whole"), 0)
	if err != nil {
		t.Fatal(err)
	}
	whole := result(out)
	once := maps.Clone(asked)
	clear(asked)
	if whole.Requests < 1000 {
		t.Fatalf("only %d requests", whole.Requests)
	}

	journal := filepath.Join(dir, "killed")
	const times = 8
	for range times {
		if out, err = run(journal, 1+r.IntN(whole.Requests/times)); err == nil {
			t.Fatalf("it was not killed: %s", out)
		}
	}
	if out, err = run(journal, 0); err != nil {
		t.Fatal(err)
	}
	res := result(out)
	twice := 0
	for body, n := range asked {
		if n > once[body] {
			twice += n - once[body]
		}
	}
	t.Logf("%d requests, killed %d times, %d of them behind an answer: %d asked twice, %d from the journal", res.Requests, kills, lost, twice, res.Resumed)
	if kills != times || twice > lost || len(asked) != len(once) || res.Requests != whole.Requests || fmt.Sprint(res.Fields) != fmt.Sprint(whole.Fields) {
		t.Errorf("%d kills, %d of %d asked, %d twice; %d fields in %d requests, %d in %d without a break", kills, len(asked), len(once), twice, len(res.Fields), res.Requests, len(whole.Fields), whole.Requests)
	}
}

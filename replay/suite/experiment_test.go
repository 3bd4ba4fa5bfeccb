package suite

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"unwire/replay"
	"unwire/replay/credential"
	"unwire/replay/internal/standintest"
	"unwire/replay/outbound"
	"unwire/replay/standin"
)

// The experiments in testdata/suite are of the stand-in's first turn.
func TestSuite(t *testing.T) {
	// The experiments send the same conversation at the same time.
	a := standintest.New(t, standin.Options{Script: []byte(`{"v":1,"second_run":"allow"}`)})
	id := a.Turn("Does Backoff ever return more than its limit?")
	files, err := filepath.Glob("testdata/*.replay")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close() //nolint:errcheck // it was only read
			x, err := parse(f)
			if err != nil {
				t.Fatal(err)
			}
			r := send(t, a, id, replay.Changes{Edits: x.Edits})
			if failed := x.check(r); failed != nil {
				t.Error(strings.Join(failed, "\n"))
			}
			// Expectations can fail: the opposite of each does.
			for i := range x.Expect {
				e := x.Expect[i]
				switch e.what {
				case "differs":
					e.what = "same"
				case "same":
					e.what = "differs"
				case "value":
					e.match, e.want = nil, "\x00"
				default:
					e.want += "?"
				}
				if got, ok := e.met(r); ok {
					t.Errorf("the opposite of %q is met: %s", e.Text, got)
				}
			}
		})
	}
}

// credentials are those that the stand-in wants.
func credentials(t *testing.T) *credential.Credentials {
	t.Helper()
	c, err := credential.Resolver{Getenv: func(name string) string {
		return map[string]string{credential.EnvToken: standintest.Token}[name]
	}}.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// send sends an exchange that was recorded of the stand-in again.
func send(t *testing.T, a *standintest.Agent, id int64, c replay.Changes) *replay.Result {
	t.Helper()
	c.Wait = 3 * time.Second
	request, err := replay.NewRequest(t.Context(), a.Store, id, c)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := request.Plan(t.Context(), replay.Options{Policy: outbound.Policy{Roots: a.Roots}, Schema: a.Schema, Credentials: credentials(t)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := plan.Send(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// An experiment expects nothing of an answer that never came, not even that it
// does not differ.
func TestNothingIsExpectedOfNoAnswer(t *testing.T) {
	a := standintest.New(t, standin.Options{})
	id := a.Turn("Does Backoff ever return more than its limit?")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	r := send(t, a, id, replay.Changes{To: &url.URL{Scheme: "http", Host: closed.Addr().String()}})
	x, err := parse(strings.NewReader("exchange 1\nexpect verdict not_sent\nexpect same @down 1\nexpect same\nexpect value 1~.*\n"))
	if err != nil {
		t.Fatal(err)
	}
	failed := x.check(r)
	if len(failed) != 3 {
		t.Fatalf("%q", failed)
	}
	for _, f := range failed {
		if !strings.Contains(f, "no answer came: not sent: ") {
			t.Errorf("%q", f)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"exchange 1\n":                                    "the line with the expected result is missing",
		"expect verdict same\n":                           "the line that names the exchange is missing",
		"exchange 0\n":                                    "line 1: \"0\" is not an exchange number",
		"exchange 1\nexpect verdict maybe\n":              "line 2: expect verdict: the value \"maybe\" must be one of same",
		"exchange 1\nexpect code bad\n":                   "is not an error code",
		"exchange 1\nexpect status x\n":                   "is not a number",
		"exchange 1\nexpect value 1.2\n":                  `"1.2" needs = or ~ after the path`,
		"exchange 1\nexpect value 1..2=3\n":               `"1..2" is not the path of a field`,
		"exchange 1\nexpect value 1~(\n":                  "missing closing",
		"exchange 1\nexpect value @x 1=2\n":               `line 2: "@x 1=2" must begin with the number of a frame`,
		"exchange 1\nexpect luck\n":                       "must be verdict, code",
		"exchange 1\n\nset 1\nexpect verdict same\n":      "line 3: ",
		"exchange 1\nset 1 <<A\nx\nexpect verdict same\n": "line 2: the end of the value, a line A, is missing",
	} {
		if _, err := parse(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("# a\ncapture a.uwc\nexchange 2\nset 1=x\nexpect verdict same\nexpect value @0 1~x\n")
	f.Fuzz(func(t *testing.T, text string) {
		x, err := parse(strings.NewReader(text))
		if err == nil && (x.Exchange < 1 || len(x.Expect) == 0) {
			t.Errorf("%+v", x)
		}
	})
}

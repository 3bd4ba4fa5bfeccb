package mitm

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"unwire/captures/need"
)

// curlChecks are made by the curl program.
func curlChecks(t *testing.T) []check {
	path, err := need.CheckCurl("HTTP2", "libz")
	if err != nil {
		t.Run("curl", func(t *testing.T) { t.Skipf("its rows are missing: %v", err) })
		return nil
	}
	upload := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(upload, bytes.Repeat([]byte("curl"), 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	var out []check
	for _, c := range []struct {
		name, want, path string
		args             []string
	}{
		{"GET", "GET /echo", "/echo", nil},
		{"HEAD", "ength: 5", "/length", []string{"--head"}},
		{"POST", `body "a=b"`, "/echo", []string{"-d", "a=b"}},
		{"upload from a file", "400000", "/sum", []string{"-T", upload}},
		{"upload of unknown length", "length -1", "/sum", []string{"-T", "-"}},
		{"gzip", "gzip gzip", "/gzip", []string{"--compressed"}},
		{"1xx", "</b>", "/hints", nil},
		{"trailers", "nnounced", "/trailers?body=1", nil},
		{"204", " 204", "/status?code=204", nil},
		{"304", " 304", "/status?code=304", []string{"-H", `If-None-Match: "tag"`}},
		{"range", "2345", "/range", []string{"-r", "2-5"}},
		{"cut off", "half", "/cut", nil},
		{"early reply", "refused", "/early", []string{"-d", "little"}},
	} {
		for _, version := range []string{"--http1.1", "--http2"} {
			if (c.path == "/cut" || c.path == "/early") && version == "--http2" {
				continue // curl may drop what came right before a reset
			}
			name := c.name + ", HTTP/" + map[string]string{"--http1.1": "1", "--http2": "2"}[version]
			out = append(out, check{client: "curl", name: name, want: c.want, run: func(t *testing.T, l *lane) string {
				return l.curl(t, path, c.path, version, c.args)
			}})
		}
	}
	return append(out, check{client: "curl", name: "POST, HTTP/1.0", want: `body "a=b"`, run: func(t *testing.T, l *lane) string {
		return l.curl(t, path, "/echo", "--http1.0", []string{"-d", "a=b"})
	}})
}

var (
	curlPlaces = regexp.MustCompile(`127\.0\.0\.1:\d+|curl: \(\d+\) [^\n]*`)
	curlCode   = regexp.MustCompile(`^curl: \(\d+\)`)
)

// curl returns what curl prints, headers and informational ones included, and
// the number of its error.
func (l *lane) curl(t *testing.T, program, path, version string, args []string) string {
	if l.clear() && version == "--http2" {
		version = "--http2-prior-knowledge"
	}
	argv := []string{"-q", "-sS", "-D", "-", "--suppress-connect-headers", "--max-time", "10", version, "--noproxy", ""}
	if l.caFile != "" {
		argv = append(argv, "--cacert", l.caFile)
	}
	switch {
	case l.proxied:
		argv = append(argv, "--proxy", l.bench.url().String())
	case l.name == socksWay:
		argv = append(argv, "--socks5", l.bench.addr)
	case l.name == transparentWay:
		argv = append(argv, "--connect-to", "::"+l.redirected(t, strings.TrimPrefix(l.base, "https://")))
	}
	ctx, cancel := context.WithTimeout(t.Context(), matrixTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append(append(argv, args...), l.base+path)...)
	cmd.Stdin = strings.NewReader("from stdin")
	cmd.WaitDelay = time.Second
	out, _ := cmd.CombinedOutput() // its status is in what it says
	return orderly(curlPlaces.ReplaceAllStringFunc(string(out), func(s string) string { return curlCode.FindString(s) }))
}

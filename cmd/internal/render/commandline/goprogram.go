package commandline

import (
	"fmt"
	"go/format"
	"slices"
	"strconv"
	"strings"
)

// literalBytes is the number of body bytes on one line of a program.
const literalBytes = 64

// ofTransport lists further headers that are left out because Go's HTTP client sets them.
var ofTransport = []string{"accept-encoding", "proxy-connection"}

// Go returns a small Go program that sends the request as it was recorded. It reads secrets from the
// environment.
//
// Limits: a body of 1 MiB. Errors: errUnwritable.
func Go(r *Request) (*Line, error) {
	r, left := r.handshake()
	u, err := r.checkedRaw()
	if err != nil {
		return nil, err
	}
	l := &builder{left: left}

	// A secret is read from the environment when the program runs.
	var headers strings.Builder
	for _, h := range l.checkedHeaders(r, slices.Concat(r.leftOut(), ofTransport)) {
		value := literal(h.text)
		switch {
		case h.variable != "" && h.text == "":
			value = "secret(" + literal(h.variable) + ")"
		case h.variable != "":
			value += " + secret(" + literal(h.variable) + ")"
		}
		fmt.Fprintf(&headers, "\treq.Header.Add(%s, %s)\n", literal(h.name), value)
	}

	// The program speaks the version of HTTP that was recorded.
	protocol := "HTTP1"
	switch {
	case r.HTTP == "2" && u.Scheme == "http":
		protocol = "UnencryptedHTTP2"
	case r.HTTP == "2":
		protocol = "HTTP2"
	}
	body, bodyReader := "\n", "http.NoBody"
	if len(r.Body) > 0 {
		body, bodyReader = "\n// body is the body of the request, as it was recorded.\nconst body = "+literals(r.Body)+"\n\n", "strings.NewReader(body)"
	}
	text := strings.NewReplacer(
		"BODYREADER", bodyReader, "\nBODY\n", body, "METHOD", literal(r.Method), "URL", literal(u.String()),
	).Replace(programHead) + headers.String() + strings.Replace(programTail, "PROTOCOL", protocol, 1)
	if len(r.Body) == 0 {
		text = strings.Replace(text, "\t\"strings\"\n", "", 1)
	}
	if len(l.variables) > 0 {
		text += programSecret
	}

	// gofmt's form depends on the expressions; formatting also proves that the program parses.
	formatted, err := format.Source([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnwritable, err)
	}
	return &Line{Text: strings.TrimSuffix(string(formatted), "\n"), Variables: l.variables, Left: l.left}, nil
}

// literal returns s as a Go string literal in ASCII.
func literal(s string) string { return strconv.QuoteToASCII(s) }

// literals returns a body as a Go expression: string literals on several lines, joined by +.
func literals(body []byte) string {
	var b strings.Builder
	for piece := range slices.Chunk(body, literalBytes) {
		if b.Len() > 0 {
			b.WriteString(" +\n\t")
		}
		b.WriteString(literal(string(piece)))
	}
	return b.String()
}

const programHead = `// This program sends a recorded request again, and prints the answer. It needs Go 1.24.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

BODY
func main() {
	req, err := http.NewRequest(METHOD, URL, BODYREADER)
	if err != nil {
		fail(err)
	}
`

const programTail = `
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, Protocols: new(http.Protocols)}
	transport.Protocols.SetPROTOCOL(true)
	client := &http.Client{
		Transport: transport,
		// The recorded client decided itself about redirects.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		fail(err)
	}
	defer resp.Body.Close()

	fmt.Fprintln(os.Stderr, resp.Proto, resp.Status)
	if _, err := io.Copy(os.Stdout, resp.Body); err != nil {
		fail(err)
	}
	for name, values := range resp.Trailer {
		fmt.Fprintln(os.Stderr, name, values)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
`

const programSecret = `
// secret returns a secret from the environment.
func secret(name string) string {
	value := os.Getenv(name)
	if value == "" {
		fail(fmt.Errorf("set the environment variable %s", name))
	}
	return value
}
`

// Package commandline writes a recorded exchange as the command line of another tool (curl,
// grpcurl or buf), or as a Go program.
//
//	line, err := commandline.Curl(request)
//
// A line is for a POSIX shell. It has no secrets: where one was, the shell puts in a variable.
// Nothing recorded can become an option, name a file, end a quotation or reach the terminal as
// a control character; what cannot be written so is left out, and Line.Left says what, or it
// is an error.
package commandline

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"unwire/captures"
)

// Tools returns the values of --copy: the tools whose command lines can be written, and "go" for a
// program.
func Tools() []string { return []string{"curl", "grpcurl", "buf", "go"} }

// Limits of a command line.
const (
	// maxArgument is the largest request body that is written as one argument, in bytes.
	maxArgument = 64 << 10

	// maxBody is the largest request body, in bytes.
	maxBody = 1 << 20
)

// errUnwritable is wrapped by errors that an exchange cannot be written as a command line.
var errUnwritable = errors.New("the request cannot be written as a command line")

// A Request is the recorded request from which a command line is built.
type Request struct {
	// Method is the HTTP method.
	Method string

	// URL is the URL of the request.
	URL string

	// HTTP is the version of HTTP, "1.1" or "2".
	HTTP string

	// Headers are the request headers.
	Headers captures.Headers

	// Secret returns the environment variable that replaces the secret in a header's value, and the
	// text before the secret, such as "Bearer ". ok is false if the header contains no secret.
	Secret func(h captures.Header) (prefix, variable string, ok bool)

	// Body is the recorded body, which curl and Go programs send.
	Body []byte

	// WebSocket means that the request opened a WebSocket.
	WebSocket bool

	// Messages are the client's messages as JSON, which the other tools send.
	Messages [][]byte

	// Protocol is "connect", "grpc" or "grpc-web"; "" if the request is not an RPC.
	Protocol string

	// Service is the full name of the service.
	Service string

	// RPC is the name of the method.
	RPC string
}

// A Line is a shell command line that sends a recorded request with another tool.
type Line struct {
	// Text is the command line for a POSIX shell.
	Text string

	// Variables are the environment variables that must be set to the secrets.
	Variables []string

	// Left describes each header that was left out, and why.
	Left []string
}

// Patterns of texts that are safe on a command line: header names, HTTP methods, HOST:PORT, and names of
// environment variables.
var (
	token   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9!#$%&'*+.^_|~-]*$`) })
	verb    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z]{1,32}$`) })
	hostOf  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9\[][A-Za-z0-9.:\[\]_-]*$`) })
	varName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`) })
)

// ofConnection lists headers that are left out because the tool sets them itself or cannot send the
// recorded value. Headers that permit compressed responses are left out, too, so that the responses are
// readable.
var ofConnection = []string{
	"content-length", "host", "connection", "transfer-encoding", "expect", "keep-alive", "upgrade",
	"accept-encoding", "connect-accept-encoding", "grpc-accept-encoding",
}

// ofProtocol lists further headers that are left out for tools that speak the RPC protocol and set them.
var ofProtocol = []string{
	"content-type", "content-encoding", "connect-content-encoding", "grpc-encoding", "te", "x-grpc-web",
	"connect-protocol-version", "connect-timeout-ms", "grpc-timeout", "user-agent", "accept",
}

// isBinaryType reports whether the answer to a request of a content type is binary. curl prints such an answer on a
// terminal only with --output -. value is in lower case.
func isBinaryType(value string) bool {
	kind, _, _ := strings.Cut(value, ";")
	return strings.HasPrefix(kind, "application/grpc") || strings.HasPrefix(kind, "application/connect+") || strings.HasSuffix(kind, "proto") || strings.HasSuffix(kind, "protobuf")
}

// checkedRaw returns the URL of a request, if the request can be written with its recorded method and
// body.
//
// Errors: errUnwritable.
func (r *Request) checkedRaw() (*url.URL, error) {
	if !verb().MatchString(r.Method) {
		return nil, fmt.Errorf("%w: the HTTP method is %q", errUnwritable, r.Method)
	}
	if len(r.Body) > maxBody {
		return nil, fmt.Errorf("%w: the body has more than %d bytes", errUnwritable, maxBody)
	}
	return r.checkedURL()
}

// Curl returns a curl command line that sends the request as it was recorded, byte for byte.
//
// Limits: a body of 1 MiB. Errors: errUnwritable.
func Curl(r *Request) (*Line, error) {
	r, left := r.handshake()
	u, err := r.checkedRaw()
	if err != nil {
		return nil, err
	}
	l := &builder{left: left}

	// The URL is passed literally: without globbing, and without removing dot segments.
	l.add("curl", "--globoff", "--path-as-is", "--request", r.Method)
	switch {
	case r.HTTP != "2":
		l.add("--http1.1")
	case u.Scheme == "http":
		l.add("--http2-prior-knowledge")
	default:
		l.add("--http2")
	}
	l.headers(r, "--header", r.leftOut())
	if r.WebSocket {
		l.add("--no-buffer", "--output", "-")
	}
	// curl adds a content type of its own unless the header is removed.
	if r.Headers.Get("content-type") == "" && len(r.Body) > 0 {
		l.add("--header", quote("content-type:"))
	}
	if slices.ContainsFunc(r.Headers, func(h captures.Header) bool {
		return strings.EqualFold(h.Name, "content-type") && isBinaryType(strings.ToLower(h.Value))
	}) {
		l.add("--output", "-") // binary is what is wanted
	}

	// A body that is not printable is piped through printf, because an argument cannot contain NUL.
	from := ""
	switch {
	case len(r.Body) == 0 && r.Method != "GET" && r.Method != "HEAD":
		l.add("--data-raw", "''")
	case len(r.Body) == 0:
	case len(r.Body) <= maxArgument && isPrintable(string(r.Body)):
		l.add("--data-raw", quote(string(r.Body)))
	default:
		from = "printf " + octal(r.Body) + " | "
		l.add("--data-binary", "@-")
	}
	l.add("--url", quote(u.String()))
	return l.line(from), nil
}

// GRPCurl returns a grpcurl command line for a recorded call, which is sent by gRPC. It works if the
// server offers server reflection; otherwise the user must add -proto.
//
// Errors: errUnwritable.
func GRPCurl(r *Request) (*Line, error) {
	u, err := r.checkedCall()
	if err != nil {
		return nil, err
	}
	if u.Path != "/"+r.Service+"/"+r.RPC {
		return nil, fmt.Errorf("%w of grpcurl: the URL has a path before the service", errUnwritable)
	}
	l := &builder{}
	l.add("grpcurl")
	if u.Scheme == "http" {
		l.add("-plaintext")
	}
	l.headers(r, "-H", append(slices.Clone(ofConnection), ofProtocol...))
	data, err := r.data()
	if err != nil {
		return nil, err
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	host := strings.TrimSuffix(u.Host, ":"+u.Port())
	l.add("-d", data, quote(host+":"+port), quote(r.Service+"/"+r.RPC))
	return l.line(""), nil
}

// Buf returns a 'buf curl' command line for a recorded call, with the recorded protocol. It works if the
// server offers server reflection; otherwise the user must add --schema.
//
// Errors: errUnwritable.
func Buf(r *Request) (*Line, error) {
	u, err := r.checkedCall()
	if err != nil {
		return nil, err
	}
	l := &builder{}
	l.add("buf", "curl", "--protocol", strings.ReplaceAll(r.Protocol, "-", ""))
	if u.Scheme == "http" && (r.HTTP == "2" || r.Protocol == "grpc") {
		l.add("--http2-prior-knowledge")
	}
	l.headers(r, "--header", append(slices.Clone(ofConnection), ofProtocol...))
	data, err := r.data()
	if err != nil {
		return nil, err
	}
	u.RawQuery = ""
	l.add("--data", data, quote(u.String()))
	return l.line(""), nil
}

// checkedURL returns the request's URL, if it is an http or https URL of printable characters without a
// user name.
func (r *Request) checkedURL() (*url.URL, error) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || !hostOf().MatchString(u.Host) || u.User != nil || !isPrintable(u.String()) {
		return nil, fmt.Errorf("%w: the URL is not an http or https URL with a host", errUnwritable)
	}
	u.Fragment = ""
	return u, nil
}

// checkedCall returns the request's URL, or an error if the URL cannot be written in a command line or the request is
// not an RPC.
func (r *Request) checkedCall() (*url.URL, error) {
	u, err := r.checkedURL()
	if err == nil && (r.Service == "" || !slices.Contains([]string{"connect", "grpc", "grpc-web"}, r.Protocol)) {
		err = fmt.Errorf("%w of this tool: the request is not a Connect, gRPC or gRPC-Web call", errUnwritable)
	}
	return u, err
}

// data returns the client's messages as one quoted argument: JSON objects separated by spaces, in ASCII.
func (r *Request) data() (string, error) {
	var all strings.Builder
	for i, m := range r.Messages {
		if i > 0 {
			all.WriteByte(' ')
		}
		// Non-ASCII characters are escaped, so that the command line survives any locale.
		for _, c := range string(m) {
			switch {
			case c < ' ' || c == 0x7f:
				return "", fmt.Errorf("%w: message %d has a control character", errUnwritable, i+1)
			case c < utf8.RuneSelf:
				all.WriteRune(c)
			case c > 0xffff:
				c -= 0x10000
				fmt.Fprintf(&all, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
			default:
				fmt.Fprintf(&all, `\u%04x`, c)
			}
		}
	}
	if all.Len() > maxArgument {
		return "", fmt.Errorf("%w: the messages have more than %d bytes", errUnwritable, maxArgument)
	}
	if text := all.String(); text == "" || text[0] == '{' {
		return quote(text), nil
	}
	return "", fmt.Errorf("%w: the first message is not a JSON object", errUnwritable)
}

// A builder collects the parts of a command line.
type builder struct {
	// words are the words of the command line.
	words []string

	// variables are the environment variables for secrets.
	variables []string

	// left describes the headers that were left out.
	left []string
}

// add appends words that are already quoted.
func (b *builder) add(words ...string) { b.words = append(b.words, words...) }

// A header is a header to be written.
type header struct {
	// name is the name of the header.
	name string

	// text is its value, or the part of the value before a secret.
	text string

	// variable is the environment variable with the secret that follows text; "" if there is no secret.
	variable string
}

// checkedHeaders returns the headers of a request that can be written, except those named in but. It
// records the variables for secrets, and which headers are left out.
func (b *builder) checkedHeaders(r *Request, but []string) (list []header) {
	for _, h := range r.Headers {
		name := strings.ToLower(h.Name)
		if slices.Contains(but, name) || strings.HasPrefix(name, ":") {
			continue
		}
		// A secret becomes a variable, without which the line fails.
		text, variable, secret := r.Secret(h)
		if !secret {
			text, variable = h.Value, ""
		}
		switch {
		case !token().MatchString(name):
			b.left = append(b.left, fmt.Sprintf("a header is left out: %q is not a name", name))
		case !isPrintable(text):
			b.left = append(b.left, "the header "+name+" is left out: it has control characters, or is not UTF-8")
		case secret && !varName().MatchString(variable):
			b.left = append(b.left, "the header "+name+" is left out: no variable can be named after it")
		default:
			list = append(list, header{name, text, variable})
			if secret && !slices.Contains(b.variables, variable) {
				b.variables = append(b.variables, variable)
			}
		}
	}
	return list
}

// headers appends the headers of the request, except those named in but, each after the word flag.
func (b *builder) headers(r *Request, flag string, but []string) {
	for _, h := range b.checkedHeaders(r, but) {
		switch {
		case h.variable != "":
			b.add(flag, quote(h.name+": "+h.text)+`"${`+h.variable+`:?}"`)
		case h.text == "" && flag == "--header" && b.words[0] == "curl":
			b.add(flag, quote(h.name+";")) // so curl sends an empty one
		default:
			b.add(flag, quote(h.name+": "+h.text))
		}
	}
}

// line returns the finished command line. from is a command whose output is piped into it, or "".
func (b *builder) line(from string) *Line {
	return &Line{Text: from + strings.Join(b.words, " "), Variables: b.variables, Left: b.left}
}

// quote quotes a word for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// octal returns data as a quoted format string for the shell's printf, which prints these bytes.
func octal(data []byte) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, c := range data {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, `\%03o`, c)
	}
	b.WriteByte('\'')
	return b.String()
}

// isPrintable reports whether a text is valid UTF-8 without control characters.
func isPrintable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

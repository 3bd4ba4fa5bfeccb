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
	"unicode"
	"unicode/utf8"

	"unwire/captures"
)

// Tools are the tools that there are command lines for, and go for a program.
func Tools() []string { return []string{"curl", "grpcurl", "buf", "go"} }

// Bounds of a line.
const (
	maxArgument = 64 << 10 // bytes of a body that is one argument
	maxBody     = 1 << 20  // bytes of any body
)

// errUnwritable is wrapped where an exchange cannot be written as a command line.
var errUnwritable = errors.New("cannot be written as a command line")

// A Request is the recorded request from which a command line is built.
type Request struct {
	// Method and URL are the request line, and Headers the header section.
	Method, URL string
	HTTP        string // "1.1" or "2"
	Headers     captures.Headers

	// Secret returns the environment variable that replaces the secret in a header's value, and the
	// text before the secret, such as "Bearer ". ok is false if the header contains no secret.
	Secret func(h captures.Header) (prefix, variable string, ok bool)

	// Body is the request's body as it was on the wire, for curl and Go.
	Body []byte

	// Messages are the client's messages as JSON, and Protocol is connect, grpc or grpc-web,
	// for the others.
	Messages [][]byte
	Protocol string

	// Service and RPC are the full name of the service and the name of the method.
	Service, RPC string
}

// A Line is a shell command line that sends a recorded request with another tool.
type Line struct {
	// Text is the command line for a POSIX shell.
	Text string

	// Variables are the environment variables that must contain the secrets.
	Variables []string

	// Left are the headers that were left out, with the reason.
	Left []string
}

var (
	token   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9!#$%&'*+.^_|~-]*$`)
	verb    = regexp.MustCompile(`^[A-Z]{1,32}$`)
	hostOf  = regexp.MustCompile(`^[A-Za-z0-9\[][A-Za-z0-9.:\[\]_-]*$`)
	varName = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)
)

// ofConnection lists the headers that are omitted because the tool sets them itself or cannot send the
// recorded value. Headers that allow compressed responses are also omitted, so that the responses are
// readable.
var ofConnection = []string{
	"content-length", "host", "connection", "transfer-encoding", "expect", "keep-alive", "upgrade",
	"accept-encoding", "connect-accept-encoding", "grpc-accept-encoding",
}

// ofProtocol are further headers that tools which know the protocol make.
var ofProtocol = []string{
	"content-type", "content-encoding", "connect-content-encoding", "grpc-encoding", "te", "x-grpc-web",
	"connect-protocol-version", "connect-timeout-ms", "grpc-timeout", "user-agent", "accept",
}

// checkedRaw returns the URL of a request that can be written with its method and its body as recorded.
//
// Errors: errUnwritable.
func (r *Request) checkedRaw() (*url.URL, error) {
	if !verb.MatchString(r.Method) {
		return nil, fmt.Errorf("%w: its method is %q", errUnwritable, r.Method)
	}
	if len(r.Body) > maxBody {
		return nil, fmt.Errorf("%w: its body has more than %d bytes", errUnwritable, maxBody)
	}
	return r.checkedURL()
}

// Curl writes the request as it was recorded, byte for byte.
//
// Limits: a body of 1 MiB. Errors: errUnwritable.
func Curl(r *Request) (*Line, error) {
	u, err := r.checkedRaw()
	if err != nil {
		return nil, err
	}
	l := &builder{}

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
	l.headers(r, "--header", ofConnection)
	// curl adds a content type of its own unless the header is removed.
	if r.Headers.Get("content-type") == "" && len(r.Body) > 0 {
		l.add("--header", quote("content-type:"))
	}
	if slices.ContainsFunc(r.Headers, func(h captures.Header) bool { return strings.HasPrefix(strings.ToLower(h.Value), "application/grpc") }) {
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

// GRPCurl writes a call by gRPC. The server has to offer server reflection, or the user adds
// -proto.
//
// Errors: errUnwritable.
func GRPCurl(r *Request) (*Line, error) {
	u, err := r.checkedCall()
	if err != nil {
		return nil, err
	}
	if u.Path != "/"+r.Service+"/"+r.RPC {
		return nil, fmt.Errorf("%w of grpcurl: the service is below a path", errUnwritable)
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

// Buf writes a call of `buf curl` by the protocol that was recorded. The server has to offer
// server reflection, or the user adds --schema.
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

// checkedURL returns the request's URL after checking that its text is printable and begins with its
// scheme.
func (r *Request) checkedURL() (*url.URL, error) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || !hostOf.MatchString(u.Host) || u.User != nil || !isPrintable(u.String()) {
		return nil, fmt.Errorf("%w: its URL is not one of http or https with a host", errUnwritable)
	}
	u.Fragment = ""
	return u, nil
}

// checkedCall is like checkedURL, and also checks that the request is an RPC.
func (r *Request) checkedCall() (*url.URL, error) {
	u, err := r.checkedURL()
	if err == nil && (r.Service == "" || !slices.Contains([]string{"connect", "grpc", "grpc-web"}, r.Protocol)) {
		err = fmt.Errorf("%w of this tool: it is not a call by Connect, gRPC or gRPC-Web", errUnwritable)
	}
	return u, err
}

// data are the messages as an argument: JSON objects with spaces between them, in ASCII.
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
		return "", fmt.Errorf("%w: its messages have more than %d bytes", errUnwritable, maxArgument)
	}
	if text := all.String(); text == "" || text[0] == '{' {
		return quote(text), nil
	}
	return "", fmt.Errorf("%w: its first message is not a JSON object", errUnwritable)
}

// A builder assembles the words of a command line.
type builder struct {
	words           []string
	variables, left []string
}

func (b *builder) add(words ...string) { b.words = append(b.words, words...) }

// A header is one that can be written: a text, and behind it a secret if variable names one.
type header struct{ name, text, variable string }

// checkedHeaders returns the headers that can be written, without those of but. It notes the variables of secrets, and
// what is left out.
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
		case !token.MatchString(name):
			b.left = append(b.left, fmt.Sprintf("a header is left out: %q is not a name", name))
		case !isPrintable(text):
			b.left = append(b.left, "the header "+name+" is left out: it has control characters, or is not UTF-8")
		case secret && !varName.MatchString(variable):
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

// headers adds the headers of the request, except those whose names are in but, each after the flag.
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

func (b *builder) line(from string) *Line {
	return &Line{Text: from + strings.Join(b.words, " "), Variables: b.variables, Left: b.left}
}

// quote quotes a word for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// octal is the format with which printf prints bytes.
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

// isPrintable reports whether a text contains no control or other characters that a terminal would
// interpret.
func isPrintable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

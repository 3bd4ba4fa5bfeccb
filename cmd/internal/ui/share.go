package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/decode"
)

// shareEndpoints returns the API endpoints that return an exchange as a command line or as a file.
func shareEndpoints() []endpoint {
	return []endpoint{
		{path: "copy", answer: answerCopy},
		{path: "download", answer: answerDownload},
	}
}

// command runs an unwire command for the page. It returns what the command printed on stdout and on
// stderr.
//
// Errors: what the command printed on stderr, if its exit status is not in accepted.
func (q *request) command(ctx context.Context, accepted []int, args ...string) ([]byte, string, error) {
	out, said, status := q.options.Run(ctx, args...)
	text := strings.TrimSpace(string(said))
	for _, s := range accepted {
		if status == s {
			return out, text, nil
		}
	}
	return nil, "", badRequest("%s", strings.ReplaceAll(strings.ReplaceAll(text, "unwire: error: ", ""), "unwire: hint: ", ""))
}

// address returns the address of the exchange that the parameters c and x name, in the form of the
// command line.
func (q *request) address() (query.Address, error) {
	f, err := q.file()
	if err != nil {
		return query.Address{}, err
	}
	id, err := q.number("x", 0)
	if err != nil {
		return query.Address{}, err
	}
	return query.Address{File: f.path, Exchange: id, Frame: -1}, nil
}

// answerCopy implements the endpoint copy. It returns an exchange as the command line of another tool, or
// as a Go program.
func answerCopy(ctx context.Context, q *request) (any, error) {
	at, err := q.address()
	if err != nil {
		return nil, err
	}
	tool := q.query.Get("as")
	switch tool {
	case "curl", "grpcurl", "buf", "go":
	default:
		return nil, badRequest("the parameter as must be curl, grpcurl, buf or go, not %q", tool)
	}
	out, said, err := q.command(ctx, []int{0}, "show", "--copy", tool, "--", at.String())
	if err != nil {
		return nil, err
	}
	return map[string]any{"v": 1, "text": strings.TrimSuffix(string(out), "\n"), "remarks": said}, nil
}

// answerDownload implements the endpoint download. It returns a frame, an exchange, or definitions
// inferred from it as a file.
func answerDownload(ctx context.Context, q *request) (any, error) {
	at, err := q.address()
	if err != nil {
		return nil, err
	}
	base := strings.TrimSuffix(filepath.Base(at.File), ".uwc")
	if at.Exchange != 0 {
		base += "-" + strconv.FormatInt(at.Exchange, 10)
	}
	switch what := q.query.Get("what"); what {
	case "raw", "data", "json":
		return downloadFrame(ctx, q, what)
	case "har", "jsonl":
		// export redacts, and masks headers that may be secrets.
		out, _, err := q.command(ctx, []int{0}, "export", "--format", what, "--", at.String())
		return &download{base + "." + what, out}, err
	case "proto":
		out, _, err := q.command(ctx, []int{0}, "schema", "infer", "--", at.String())
		return &download{base + ".proto", out}, err
	default:
		return nil, badRequest("the parameter what must be raw, data, json, har, jsonl or proto, not %q", what)
	}
}

// downloadFrame returns a frame as a file. what is raw for its bytes as sent, data for its bytes after
// decompression, or json for what 'unwire show --json' prints.
func downloadFrame(ctx context.Context, q *request, what string) (any, error) {
	return withFrame(ctx, q, func(d *document, f *decode.Frame) (any, error) {
		name := downloadName(d, f)
		switch what {
		case "raw":
			return &download{name + ".raw", f.Raw}, nil
		case "data":
			return &download{name + ".bin", f.Data}, nil
		}
		l := contract.NewFrame(d.at, f, d.view(f), d.views.FieldsOf)
		l.Notes = d.notes.Of(f)
		data, err := line(l)
		return &download{name + ".json", append(data, '\n')}, err
	})
}

// downloadName returns the file name for a frame without its extension.
func downloadName(d *document, f *decode.Frame) string {
	return fmt.Sprintf("exchange-%d-%s-%d", d.id, f.Dir, f.Seq)
}

// safeName returns a field path as a part of a file name. It replaces characters that could be special.
func safeName(path string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, path[:min(len(path), 100)])
}

// maxSmallFile bounds a file of the user's settings.
const maxSmallFile = 1 << 20

// readSmallFile returns the content of a file of the user's settings, at most maxSmallFile bytes; nil if
// the file does not exist.
func readSmallFile(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.LimitReader(f, maxSmallFile))
}

// writeSmallFile replaces the content of a file of the user's settings. It creates the folder if
// necessary.
func writeSmallFile(name string, data []byte) error {
	if name == "" {
		return badRequest("the folder for settings could not be determined")
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return app.WholeFile(name, app.ForOwner, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"unwire/replay"
)

// Limits for an external command that computes a header (--header-from): its time, and the size of its
// output.
const (
	headerCommandTime = 10 * time.Second
	maxHeaderValue    = 64 << 10
)

// A headerCommand computes a header's value with a shell command of the user (--header-from). The command
// gets the captured or configured value on standard input, and prints the new value.
type headerCommand struct {
	// command is the shell command.
	command string
}

// Part returns "": the header needs no secret from the credentials.
func (headerCommand) Part() string { return "" }

// MakeHeader runs the command, and returns what it prints as the header's value, without surrounding
// white space. Empty output is an error.
func (h headerCommand) MakeHeader(ctx context.Context, c replay.HeaderCall) (string, error) {
	ctx, stop := context.WithTimeout(ctx, headerCommandTime)
	defer stop()
	cmd := exec.CommandContext(ctx, "sh", "-c", h.command)
	if runtime.GOOS == "windows" {
		cmd = exec.CommandContext(ctx, "cmd", "/c", h.command)
	}
	// A child of the command may keep the pipe open; WaitDelay closes it.
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "UNWIRE_HEADER_NAME="+c.Name, "UNWIRE_METHOD="+c.Method, "UNWIRE_URL="+c.URL)
	cmd.Stdin, cmd.Stderr = strings.NewReader(c.Value), os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}

	// Read one byte more than allowed, to notice a longer value.
	out, err := io.ReadAll(io.LimitReader(pipe, maxHeaderValue+1))
	if err == nil && len(out) > maxHeaderValue {
		err = fmt.Errorf("the output of the command is longer than %d bytes", maxHeaderValue)
		stop()
	}
	if err = errors.Join(err, cmd.Wait()); err != nil {
		return "", fmt.Errorf("the command of --header-from failed: %w", err)
	}

	// An empty value would silently drop the header.
	value := strings.TrimSpace(string(out))
	if value == "" {
		return "", errors.New("the command of --header-from printed nothing")
	}
	return value, nil
}

// HeaderMakers parses the values of --header-from, NAME=COMMAND, and returns for each header name in
// lower case the command that computes the header's value. The value is nil for NAME= without a command,
// which sends the header as captured.
func HeaderMakers(flags []string) (map[string]replay.HeaderMaker, error) {
	if len(flags) == 0 {
		return nil, nil
	}
	makers := map[string]replay.HeaderMaker{}
	for _, f := range flags {
		name, command, ok := strings.Cut(f, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if !ok || !IsHeaderName(name) {
			return nil, Usagef("--header-from must be NAME=COMMAND, or NAME= to send a header as captured, not %q", f)
		}
		if makers[name] = nil; command != "" {
			makers[name] = headerCommand{command}
		}
	}
	return makers, nil
}

// IsHeaderName reports whether s consists only of lower-case letters, digits, and the characters - _ and
// . as names of HTTP headers do.
func IsHeaderName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

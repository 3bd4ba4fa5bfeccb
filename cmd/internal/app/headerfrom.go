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

// What a command that makes a header may take and give.
const (
	headerCommandTime = 10 * time.Second
	maxHeaderValue    = 64 << 10
)

// A headerCommand makes a header's value by a command of the user's: it gets the
// captured or given value on its standard input, and prints the new one.
type headerCommand struct{ command string }

func (headerCommand) Part() string { return "" }

func (h headerCommand) MakeHeader(ctx context.Context, c replay.HeaderCall) (string, error) {
	ctx, stop := context.WithTimeout(ctx, headerCommandTime)
	defer stop()
	cmd := exec.CommandContext(ctx, "sh", "-c", h.command)
	if runtime.GOOS == "windows" {
		cmd = exec.CommandContext(ctx, "cmd", "/c", h.command)
	}
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
	out, err := io.ReadAll(io.LimitReader(pipe, maxHeaderValue+1))
	if err == nil && len(out) > maxHeaderValue {
		err = fmt.Errorf("it printed more than %d bytes", maxHeaderValue)
		stop()
	}
	if err = errors.Join(err, cmd.Wait()); err != nil {
		return "", fmt.Errorf("its command: %w", err)
	}
	value := strings.TrimSpace(string(out))
	if value == "" {
		return "", errors.New("its command printed nothing")
	}
	return value, nil
}

// HeaderMakers reads --header-from.
func HeaderMakers(flags []string) (map[string]replay.HeaderMaker, error) {
	if len(flags) == 0 {
		return nil, nil
	}
	makers := map[string]replay.HeaderMaker{}
	for _, f := range flags {
		name, command, ok := strings.Cut(f, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if !ok || !isHeaderName(name) {
			return nil, Usagef("--header-from wants NAME=COMMAND, or NAME= to send a header as captured, not %q", f)
		}
		if makers[name] = nil; command != "" {
			makers[name] = headerCommand{command}
		}
	}
	return makers, nil
}

func isHeaderName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

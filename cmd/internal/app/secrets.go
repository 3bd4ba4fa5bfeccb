package app

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// ReadSecretLines reads a file that has one secret on each line; empty lines are skipped. A secret
// shorter than least bytes is an error. No error text contains a secret.
func ReadSecretLines(path string, least int) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s contains secrets, but other users can read it (mode %04o): run 'chmod 600' on it", path, mode)
	}
	var secrets []string
	sc := bufio.NewScanner(f)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" {
			continue
		}
		if len(line) < least {
			return nil, fmt.Errorf("%s: line %d has fewer than %d bytes, which is too short for a secret", path, n, least)
		}
		secrets = append(secrets, line)
	}
	return secrets, sc.Err()
}

// placeholder matches the text that replaces a secret in a capture; see package redact.
var placeholder = regexp.MustCompile(`redacted[:-][0-9a-f]{8}`)

// printTraffic lists the commands that print recorded or received data as text.
var printTraffic = []string{"ls", "show", "chat", "grep", "diff", "decode", "call", "replay"}

// NoticePlaceholders makes ExplainPlaceholders work if cmd prints traffic for people: from now on, a looks for
// placeholders of secrets in what is written to stdout.
func (a *App) NoticePlaceholders(cmd *cobra.Command) {
	if path := strings.Fields(cmd.CommandPath()); len(path) < 2 || !slices.Contains(printTraffic, path[1]) {
		return
	}
	flags := cmd.Flags()
	if json, err := flags.GetBool("json"); err == nil && json {
		return
	}
	// The output in these formats is read by programs, which know the placeholders.
	if format, err := flags.GetString("format"); err == nil && (strings.Contains(format, "json") || strings.HasPrefix(format, "proto")) {
		return
	}
	a.Out.Notice = func(b []byte) { a.redacted = a.redacted || placeholder.Match(b) }
}

// ExplainPlaceholders explains the placeholders of secrets, if there was one in the output.
func (a *App) ExplainPlaceholders() {
	if a.redacted {
		a.Say("unwire: %s", placeholderMeaning)
	}
}

// placeholderMeaning explains the text that replaces a secret.
const placeholderMeaning = "the capture has placeholders such as [redacted:1a2b3c4d] or redacted-1a2b3c4d instead of secrets; equal placeholders stand for the same secret"

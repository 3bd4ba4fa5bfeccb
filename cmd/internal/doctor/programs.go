package doctor

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// oldestNode is the oldest major version of Node.js with which recording is tested.
const oldestNode = 20

// node checks that Node.js, if it is installed, is recent enough and honours NODE_OPTIONS, by which
// unwire redirects its connections.
func (m Machine) node(ctx context.Context) []check {
	const name = "Node"
	version, err := m.output(ctx, []string{"NODE_OPTIONS="}, "node", "--version")
	if err != nil {
		if _, missing := m.lookPath("node"); missing != nil {
			return ok(name, "not installed; only needed to record Node programs")
		}
		return warn(name, "does not run: "+err.Error(), "repair Node, so that 'node --version' works; otherwise Node clients cannot be recorded")
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestNode {
		return warn(name, version, fmt.Sprintf("use Node %d or newer: unwire is not tested with older versions", oldestNode))
	}
	const title = "unwire-doctor"
	if got, err := m.output(ctx, []string{"NODE_OPTIONS=--title=" + title}, "node", "-p", "process.title"); err != nil || got != title {
		return warn(name, version+", but this Node ignores NODE_OPTIONS", "use 'unwire capture --reverse URL': unwire cannot redirect connections of this Node to the proxy")
	}
	checks := ok(name, version+"; accepts NODE_OPTIONS, with which unwire redirects Node programs to the proxy")
	if set := m.Getenv("NODE_OPTIONS"); set != "" {
		// Its words may hold what is nobody's business; their names do not.
		checks = append(checks, warn("NODE_OPTIONS", "is set: "+optionNames(set), "capture appends its own options; if a Node client fails, unset NODE_OPTIONS and try again")...)
	}
	return checks
}

// optionNames returns the names of the options in a command line, without their values, which may be
// private.
func optionNames(options string) string {
	var names []string
	for word := range strings.FieldsSeq(options) {
		if strings.HasPrefix(word, "-") {
			name, _, _ := strings.Cut(word, "=")
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// tools reports optional programs that are useful together with unwire.
func (m Machine) tools(ctx context.Context) []check {
	var all []check
	for _, t := range []struct{ name, use string }{
		{"curl", "to test the proxy manually"},
		{"tshark", "to inspect packets"},
		{"protoc", "to use .proto files with other tools"},
	} {
		version, err := m.output(ctx, nil, t.name, "--version")
		switch {
		case err == nil:
			all = append(all, ok(t.name, version)...)
		case isMissing(m, t.name):
			all = append(all, ok(t.name, "not installed; optional, "+t.use)...)
		default:
			all = append(all, ok(t.name, "does not run: "+err.Error())...)
		}
	}
	return all
}

// isMissing reports whether a program is not in the machine's PATH.
func isMissing(m Machine, name string) bool {
	_, err := m.lookPath(name)
	return err == exec.ErrNotFound
}

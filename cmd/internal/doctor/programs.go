package doctor

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// oldestNode is the first major version with which captures are tested.
const oldestNode = 20

// node looks at the Node runtime and whether it honours NODE_OPTIONS.
func (m Machine) node(ctx context.Context) []check {
	const name = "Node"
	version, err := m.output(ctx, []string{"NODE_OPTIONS="}, "node", "--version")
	if err != nil {
		if _, missing := m.lookPath("node"); missing != nil {
			return ok(name, "not installed: needed only for clients that are Node programs")
		}
		return warn(name, "does not run: "+err.Error(), "Node clients cannot be recorded before 'node --version' works")
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestNode {
		return warn(name, version, fmt.Sprintf("captures are tested with Node %d and newer", oldestNode))
	}
	const title = "unwire-doctor"
	if got, err := m.output(ctx, []string{"NODE_OPTIONS=--title=" + title}, "node", "-p", "process.title"); err != nil || got != title {
		return warn(name, version+", but it does not honour NODE_OPTIONS", "its connections cannot be redirected: use 'unwire capture --reverse URL'")
	}
	checks := ok(name, version+", honours NODE_OPTIONS")
	if set := m.Getenv("NODE_OPTIONS"); set != "" {
		// Its words may hold what is nobody's business; their names do not.
		checks = append(checks, warn("NODE_OPTIONS", "is set: "+optionNames(set), "capture adds its own to it; if a Node client fails, try without")...)
	}
	return checks
}

// optionNames are the names of options, without their values.
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

// tools tells of programs that are of use beside unwire; none is needed.
func (m Machine) tools(ctx context.Context) []check {
	var all []check
	for _, t := range []struct{ name, use string }{
		{"curl", "to try the proxy by hand"},
		{"tshark", "to look at packets"},
		{"protoc", "to use the .proto files elsewhere"},
	} {
		version, err := m.output(ctx, nil, t.name, "--version")
		switch {
		case err == nil:
			all = append(all, ok(t.name, version)...)
		case isMissing(m, t.name):
			all = append(all, ok(t.name, "not installed: only of use "+t.use)...)
		default:
			all = append(all, ok(t.name, "does not run: "+err.Error())...)
		}
	}
	return all
}

func isMissing(m Machine, name string) bool {
	_, err := m.lookPath(name)
	return err == exec.ErrNotFound
}

package options_test

import (
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"unwire/cmd/internal/options"
)

// An old spelling sets the value of the new one, which then counts as changed.
func TestAlias(t *testing.T) {
	t.Parallel()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	limit := set.Duration("max-time", time.Minute, "")
	all := set.Bool("full", false, "")
	names := set.StringArray("like", []string{"default"}, "")
	options.Alias(set, "timeout", "max-time")
	options.Alias(set, "all", "full")
	options.Alias(set, "from", "like")
	if err := set.Parse([]string{"--timeout=3s", "--all", "--from", "a", "--like", "b"}); err != nil {
		t.Fatal(err)
	}
	if *limit != 3*time.Second || !*all || !slices.Equal(*names, []string{"a", "b"}) {
		t.Errorf("%v, %v, %q", *limit, *all, *names)
	}
	for _, name := range []string{"max-time", "full", "like"} {
		if !set.Changed(name) {
			t.Errorf("--%s counts as not given", name)
		}
	}
	if old := set.Lookup("timeout"); !old.Hidden {
		t.Errorf("%+v", old)
	}
	if err := set.Parse([]string{"--timeout", "soon"}); err == nil {
		t.Error("a wrong value is taken")
	}
}

// A message names a flag as the user typed it, and once what it is called now.
func TestAsTyped(t *testing.T) {
	t.Parallel()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	set.String("proto", "", "")
	set.String("bytes", "", "")
	options.Alias(set, "schema", "proto")
	options.Alias(set, "hex", "bytes")
	if err := set.Parse([]string{"--schema=x", "--bytes", "0a"}); err != nil {
		t.Fatal(err)
	}
	got := options.AsTyped(set, "--proto needs --type; --proto-dir, --bytes", "name a folder with --proto")
	want := []string{"--schema (the old name of --proto) needs --type; --proto-dir, --bytes", "name a folder with --schema"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

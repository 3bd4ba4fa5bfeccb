package share

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/captures/store"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/decode/secret"
	"unwire/proto"
)

// leastNamed is the shortest secret that can be named: shorter ones occur by chance.
const leastNamed = 12

// secretFlags say what is a secret besides what the rules know.
type secretFlags struct {
	env            []string
	file, proto    string
	json           bool
	keepUnsearched bool // of redact
}

func (f *secretFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.env, "secret-env", nil, "environment variable whose value is a secret too")
	cmd.Flags().StringVar(&f.file, "secret-file", "", "file of further secrets, one a line, mode 0600")
	cmd.Flags().StringVar(&f.proto, "proto", "", "folder of .proto files (default: the built-in ones; none: no definitions)")
	cmd.Flags().BoolVar(&f.json, "json", false, "JSON Lines")
}

// redactor has the default rules and the secrets that were named.
func (f *secretFlags) redactor() (*redact.Redactor, error) {
	var named []string
	for _, name := range f.env {
		v := os.Getenv(name)
		if v == "" {
			return nil, app.Fail(app.ExitCredentials, fmt.Errorf("--secret-env: $%s is not set", name), "")
		}
		if len(v) < leastNamed {
			return nil, app.Usagef("--secret-env: $%s has less than %d bytes: it would be found by chance", name, leastNamed)
		}
		named = append(named, v)
	}
	if f.file != "" {
		lines, err := readSecrets(f.file)
		if err != nil {
			return nil, app.Fail(app.ExitInput, fmt.Errorf("--secret-file: %w", err), "")
		}
		named = append(named, lines...)
	}
	return redact.New(redact.Options{Profile: proto.Profile(), Secrets: named}), nil
}

// readSecrets reads a secret a line. No error holds one.
func readSecrets(path string) ([]string, error) {
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
		return nil, fmt.Errorf("%s holds secrets and others can read it (mode %04o): chmod 600 it", path, mode)
	}
	var secrets []string
	sc := bufio.NewScanner(f)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" {
			continue
		}
		if len(line) < leastNamed {
			return nil, fmt.Errorf("%s: line %d has less than %d bytes: it would be found by chance", path, n, leastNamed)
		}
		secrets = append(secrets, line)
	}
	return secrets, sc.Err()
}

// rules are those of the definitions.
func (f *secretFlags) rules(ctx context.Context) (*secret.Rules, error) {
	defs, err := app.LoadDefinitions(ctx, f.proto)
	if err != nil {
		return nil, err
	}
	return app.SecretRules(defs), nil
}

func auditCommand(a *app.App) *cobra.Command {
	var f secretFlags
	cmd := &cobra.Command{
		Use:   "audit F.uwc…",
		Short: "Report what looks like a secret in captures, without its value",
		Long: `audit looks for secrets by the rules of recording, in headers, URLs and decoded
frames, and in the protobuf fields that are known to hold some. It prints where
they are and by which rule they were found, never what they are, and exits with
status 1 if there is one. 'unwire redact' removes them, except those that audit
reports as staying ("removable":false with --json).

It also exits with status 1 if something could not be searched (rule not-searched):
payloads of WebSockets, which are masked or compressed, bodies with an unknown
Content-Encoding, and compressed data that is damaged or cut off.`,
		Example: "  unwire audit F.uwc\n  unwire audit --json F.uwc | jq -r '.frame + \" \" + .path'\n  unwire audit --secret-env MY_TOKEN *.uwc",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.Fail(app.ExitUsage, errors.New("unwire audit: missing argument F.uwc"), "usage: "+cmd.UseLine())
			}
			return audit(cmd.Context(), a, f, args)
		},
	}
	f.addTo(cmd)
	return cmd
}

func audit(ctx context.Context, a *app.App, f secretFlags, files []string) error {
	rules, err := f.rules(ctx)
	if err != nil {
		return err
	}
	var rows [][]string
	var all []secret.Finding
	var damage error
	for _, file := range files {
		red, err := f.redactor()
		if err != nil {
			return err
		}
		found, err := auditFile(ctx, a, file, red, rules)
		damage = errors.Join(damage, err)
		for i := range found {
			if f.json {
				if err := a.Print(newFinding(file, &found[i])); err != nil {
					return err
				}
				continue
			}
			rows = append(rows, findingRow(file, &found[i]))
		}
		all = append(all, found...)
		if err != nil && !errors.Is(err, captures.ErrDamaged) {
			break
		}
	}
	if len(rows) > 0 {
		if err := a.Out.Table([]string{"RULE", "WHERE", "PLACE", "NAME", "PATH", "OFFSET", "LENGTH", "COUNT"}, rows); err != nil {
			return err
		}
	}
	if damage != nil && len(all) == 0 {
		return damage // nothing can be said of what was not read
	}
	err = sayFindings(a, all)
	if damage != nil {
		return damage
	}
	return err
}

// sayFindings says how many secrets were found, what was not searched, and what
// removes both.
func sayFindings(a *app.App, all []secret.Finding) error {
	var values, stay, bytes, runs int
	for i := range all {
		f := &all[i]
		switch {
		case f.Rule == redact.RuleUnsearched:
			bytes, runs = bytes+f.Len, runs+f.Count
		case f.Stays:
			values, stay = values+f.Count, stay+f.Count
		default:
			values += f.Count
		}
	}
	if values > 0 {
		look, them := "look like secrets", "them"
		if values == 1 {
			look, them = "looks like a secret", "it"
		}
		removes := fmt.Sprintf("removes %s", them)
		if stay > 0 {
			removes = fmt.Sprintf("cannot remove %d of them", stay)
		}
		a.Say("unwire: %s %s; 'unwire redact F.uwc -o CLEAN.uwc' %s", app.Counted(values, "value"), look, removes)
	} else {
		a.Say("unwire: nothing looks like a secret")
	}
	if runs > 0 {
		a.Say("unwire: %s in %s not searched for secrets; 'unwire redact' and exports leave these bytes out", app.Counted(bytes, "byte"), were(runs))
	}
	if len(all) > 0 {
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}

// were is a number of places with its verb.
func were(n int) string {
	if n == 1 {
		return "1 place was"
	}
	return fmt.Sprintf("%d places were", n)
}

func auditFile(ctx context.Context, a *app.App, file string, red *redact.Redactor, rules *secret.Rules) ([]secret.Finding, error) {
	store, err := app.OpenCapture(file)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	a.RemarkEmpty(ctx, store)
	return secret.Audit(ctx, store.Store, red, rules)
}

// newFinding is the contract's object for a finding.
func newFinding(file string, f *secret.Finding) *contract.Finding {
	frame := ""
	if f.Place == "frame" {
		frame = query.Address{File: file, Exchange: f.Exchange, Part: f.Part, Dir: f.Dir, Frame: f.Seq}.String()
	}
	return contract.NewFinding(file, frame, f)
}

func findingRow(file string, f *secret.Finding) []string {
	l := newFinding(file, f)
	where, place, path := l.Frame, l.Place, l.Path
	if where == "" {
		where = query.Address{File: file, Exchange: f.Exchange, Part: f.Part, Frame: -1}.String()
	}
	switch {
	case l.Header != "":
		place += " " + l.Header
	case l.Place == "body":
		place += " " + f.Dir.String()
	}
	if l.Encoding != "" {
		path += " (" + l.Encoding + ")"
	}
	return []string{l.Rule, where, place, l.Name, path, strconv.Itoa(l.Off), strconv.Itoa(l.Len), strconv.Itoa(l.Count)}
}

func redactCommand(a *app.App) *cobra.Command {
	var f secretFlags
	var out string
	cmd := &cobra.Command{
		Use:   "redact F.uwc -o CLEAN.uwc",
		Short: "Copy a capture without its secrets",
		Long: `redact cleans a capture that was recorded with --keep-secrets or by an older
version, or of which a secret is known now. Everything passes the redaction that
recording does, into a new file; the protobuf fields that are known to hold
secrets, which a recorder does not decode, are replaced as well. Exchanges keep
their numbers, times, outcomes and chunk boundaries; what was derived is dropped.
The new file is then audited: the exit status is 1 if something is left.

Payloads that cannot be searched ('unwire audit' lists them) are left out of the
copy, and the exchange's error says how much; --keep-unsearched keeps them.`,
		Example: "  unwire redact F.uwc -o CLEAN.uwc\n  unwire redact F.uwc -o CLEAN.uwc --secret-env MY_TOKEN",
		Args:    app.ExactArgs("F.uwc"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRedact(cmd.Context(), a, f, args[0], out)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the new capture; it must not exist (required)")
	cmd.Flags().BoolVar(&f.keepUnsearched, "keep-unsearched", false, "copy payloads that cannot be searched for secrets, such as those of WebSockets")
	f.addTo(cmd)
	return cmd
}

func runRedact(ctx context.Context, a *app.App, f secretFlags, file, out string) error {
	if out == "" {
		return app.Fail(app.ExitUsage, errors.New("unwire redact: missing -o CLEAN.uwc"), "the capture itself is not changed: name a new file")
	}
	if _, err := os.Lstat(out); err == nil {
		return app.Fail(app.ExitUsage, fmt.Errorf("%s exists", out), "name a new file")
	}
	rules, err := f.rules(ctx)
	if err != nil {
		return err
	}
	red, err := f.redactor()
	if err != nil {
		return err
	}
	if !f.keepUnsearched {
		red = red.Omitting()
	}
	exchanges, values, omitted, err := cleanFile(ctx, a, file, out, red, rules)
	if err != nil {
		return err
	}
	check, err := f.redactor()
	if err != nil {
		return err
	}
	left, err := auditFile(ctx, a, out, check, rules)
	if err != nil {
		return err
	}
	n := 0
	for i := range left {
		if !f.keepUnsearched || left[i].Rule != redact.RuleUnsearched {
			n += left[i].Count
		}
	}
	if f.json {
		err = a.Print(&contract.Redacted{
			File: out, Exchanges: exchanges, Fields: values, Left: n,
			OmittedExchanges: omitted.Exchanges, OmittedBytes: omitted.Bytes,
		})
		if err != nil {
			return err
		}
	} else {
		a.Say("unwire: %s in %s; %s of known fields replaced", app.Counted(exchanges, "exchange"), out, app.Counted(values, "value"))
		sayOmitted(a, omitted)
	}
	if n > 0 {
		return app.Fail(app.ExitFinding, fmt.Errorf("%s of secrets seem to be left in %s", app.Counted(n, "value"), out), "'unwire audit "+out+"' says where")
	}
	return nil
}

// sayOmitted says what was left out because it could not be searched.
func sayOmitted(a *app.App, o secret.Omitted) {
	if o.Bytes > 0 {
		a.Say("unwire: %s of %s left out, as they cannot be searched for secrets; --keep-unsearched keeps them",
			app.Counted(int(o.Bytes), "byte"), app.Counted(o.Exchanges, "exchange"))
	}
}

// cleanFile writes the copy, which gets its name when it is complete.
func cleanFile(ctx context.Context, a *app.App, file, out string, red *redact.Redactor, rules *secret.Rules) (exchanges, values int, omitted secret.Omitted, err error) {
	from, err := app.OpenCapture(file)
	if err != nil {
		return 0, 0, omitted, err
	}
	defer from.Close()
	err = a.WholeCapture(ctx, out, store.Options{Redactor: red}, func(to *store.Store) (err error) {
		exchanges, values, omitted, err = secret.Clean(ctx, to, from.Store, rules)
		if _, serr := os.Lstat(out); err == nil && serr == nil {
			return app.Fail(app.ExitUsage, fmt.Errorf("%s exists by now", out), "name a new file")
		}
		return err
	})
	return exchanges, values, omitted, err
}

package share

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"unwire/captures"
	"unwire/captures/redact"
	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/query"
	"unwire/cmd/internal/render/capturetext"
	"unwire/decode/secret"
)

// auditCommand returns the command 'unwire audit', which searches captures for secrets.
func auditCommand(a *app.App) *cobra.Command {
	var f secretFlags
	cmd := &cobra.Command{
		Use:   "audit F.uwc…",
		Short: "List likely secrets in captures, without their values",
		Long: `audit searches captures (files with recorded traffic) for secrets, such as tokens
and cookies. audit recognizes secrets by the same rules as 'unwire capture'. audit
searches headers, URLs, notes and decoded messages; it also reports each protobuf field
that is known to contain a secret. For each secret, audit prints its place in the
capture and the rule by which audit recognized it. audit never prints the value of a
secret. The rule "seen" means that the value is one of your additional secrets, or that
audit recognized the same value elsewhere by another rule. F.uwc#7/up/0 is the first
message that the client sent in exchange 7, and down is for messages of the server. In
F.uwc#7/part/up/0, part means that exchange 7 is one of several calls of a conversation.

The exit status is 1 if audit found a secret. 'unwire redact' makes a copy of the
capture without the secrets. redact cannot remove a secret that the output of --json
marks with "removable":false.

audit cannot search some data: data after a protocol upgrade, bodies with an unknown
Content-Encoding, and compressed data that is damaged or truncated. audit reports this
data with the rule "not-searched", and the exit status is then also 1.`,
		Example: `  # List the secrets in one capture
  unwire audit F.uwc
  # Print the message and the field that contain each secret
  unwire audit --json F.uwc | jq -r '.frame + " " + .path'
  # Search all captures in this folder, also for the value of MY_TOKEN
  unwire audit --secret-env MY_TOKEN *.uwc`,
		Args: cobra.ArbitraryArgs,
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

// audit executes 'unwire audit'. The exit status is 1 if there are findings.
func audit(ctx context.Context, a *app.App, f secretFlags, files []string) error {
	rules, err := f.rules(ctx, a, files...)
	if err != nil {
		return err
	}
	var list []capturetext.FileFindings
	var all []secret.Finding
	var damage error
	for _, file := range files {
		// Each capture has its own redactor: what it learns from one must not mark values in
		// another.
		red, err := f.redactor(a)
		if err != nil {
			return err
		}
		found, err := auditFile(ctx, a, file, red, rules)
		damage = errors.Join(damage, err)
		if f.json {
			for i := range found {
				if err := a.Print(newFinding(file, &found[i])); err != nil {
					return err
				}
			}
		}
		list = append(list, capturetext.FileFindings{File: file, Found: found})
		all = append(all, found...)
		if err != nil && !errors.Is(err, captures.ErrDamaged) {
			break
		}
	}
	if !f.json {
		if err := capturetext.Findings(a.Out, list); err != nil {
			return err
		}
	}

	// Without findings, a damaged capture must not look clean.
	if damage != nil && len(all) == 0 {
		return damage // the unread rest may have secrets
	}
	capturetext.FindingCounts(a.Err, secret.Count(all))
	switch {
	case damage != nil:
		return damage
	case len(all) > 0:
		return app.Fail(app.ExitFinding, nil, "")
	}
	return nil
}

// auditFile searches one capture for secrets. red finds secrets by their form, and rules by the fields
// that contain them.
func auditFile(ctx context.Context, a *app.App, file string, red *redact.Redactor, rules *secret.Rules) ([]secret.Finding, error) {
	store, err := a.OpenCapture(file)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	a.RemarkEmpty(ctx, store)
	return secret.Audit(ctx, store.Store, red, rules)
}

// newFinding converts a finding in a file to the object that --json prints.
func newFinding(file string, f *secret.Finding) *contract.Finding {
	frame := ""
	if f.Place == "frame" {
		frame = query.FindingAddress(file, f).String()
	}
	return contract.NewFinding(file, frame, f)
}

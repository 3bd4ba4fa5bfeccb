package record

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/render/capturetext"
	"unwire/mitm/launch"
)

// capturePassive executes 'capture --passive': it runs a command, records its packets, and at the same
// time converts the packets to exchanges.
func capturePassive(ctx context.Context, a *app.App, f CaptureFlags, argv []string) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}

	// The page starts before the recording, so that it can show the first exchange.
	page, err := startWorkbench(ctx, a, f, nil, func() []string { return []string{f.Out} })
	if err != nil {
		return err
	}
	defer stay(ctx, a, page) // after the packets were removed
	p, err := startPassive(ctx, a, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.recording.Remove()) }()
	stdout := a.Out.Writer
	if f.json {
		stdout = a.Err.Writer
	}

	// The command runs in a network namespace, in which its packets are recorded.
	code, count, err := launch.RunPassive(ctx, launch.Options{
		// Signals go to the command, and the recording ends when the command does.
		Begin: a.Signals.ChildRuns,
		Argv:  argv, QUIC: quicOptions(a, f), Stdin: a.In, Stdout: stdout, Stderr: a.Err.Writer,
	}, launch.Passive{
		Init: []string{self, "namespace-init"}, KeyLog: p.recording.KeyLog(), Packet: p.recording.Packet,
		Connection: p.programs.Add,
	})
	p.finder.Close() // no exchange waits for it any more

	// After an interrupt before the command ran, there is nothing to import.
	if errors.Is(err, context.Canceled) {
		return errors.Join(err, p.abandon())
	}
	if err != nil {
		return app.Fail(code, errors.Join(err, p.abandon()), capturetext.LaunchHint(err))
	}

	// Stop recording before the import finishes, so that it reads all packets.
	failed := p.recording.Stop()
	if failed != nil {
		a.Say("unwire: %s the recording of packets has failed: %v", a.Err.Red("error:"), failed)
	}
	a.Say("unwire: %s recorded (%s)%s", app.Counted(count.Recorded, "packet"), app.ByteSize(p.recording.Size()), capturetext.LostPackets(count))
	err = p.finish()

	// The packets are kept only if the user asked for them, because they contain all secrets.
	if f.packets != "" {
		err = errors.Join(err, a.KeepPackets(f.packets, p.recording.WritePackets))
	}
	if err != nil {
		return err
	}
	if err := p.report(ctx, launch.Inspect(argv[0])); err != nil {
		return err
	}
	return passiveStatus(code, failed)
}

// passiveStatus returns the error with the program's exit status: that of the command or, if it is 0,
// ExitInput if recording has failed.
func passiveStatus(code int, failed error) error {
	switch {
	case code != 0:
		return app.Fail(code, nil, "")
	case failed != nil:
		return app.Fail(app.ExitInput, nil, "")
	}
	return nil
}

// passiveKeyLog creates the key log file of --keylog, to which the command writes its TLS keys, and
// returns its absolute path; "" if the flag is not set.
func passiveKeyLog(a *app.App, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	keys, err := openKeyLog(a, name)
	if err != nil {
		return "", err
	}
	if err := keys.Close(); err != nil {
		return "", err
	}
	return filepath.Abs(name)
}

// checkPassive returns a usage error for flags that cannot be combined with --passive, or that require
// it.
func checkPassive(f CaptureFlags, argv []string) error {
	if !f.passive {
		if f.packets != "" {
			return app.Fail(app.ExitUsage, errors.New("--packets requires --passive"), "usage: unwire capture --passive --packets FILE.pcapng -- CMD ARGS…")
		}
		return nil
	}

	// Packets can only be recorded in the namespace of a command that unwire starts.
	if len(argv) == 0 {
		return app.Fail(app.ExitUsage, errors.New("--passive requires a command to run"), "usage: unwire capture --passive -- CMD ARGS…")
	}

	// Most flags of capture configure the proxy, which a passive capture does not have.
	var wrong []string
	for _, c := range []struct {
		name string
		set  bool
	}{
		{"--transparent", f.transparent},
		{"--reverse", f.reverse != ""},
		{"--only", len(f.only) > 0},
		{"--skip", len(f.skip) > 0},
		{"--rotate", f.rotate != ""},
		{"--max-size", f.maxSize != ""},
		{"--upload", f.upload != ""},
		{"--upstream-ca", f.UpstreamCA != ""},
		{"--upstream-proxy", f.UpstreamProxy != ""},
		{"--client-cert", len(f.clientCerts)+len(f.clientKeys) > 0},
	} {
		if c.set {
			wrong = append(wrong, c.name)
		}
	}
	if len(wrong) > 0 {
		flags := "this flag needs"
		if len(wrong) > 1 {
			flags = "these flags need"
		}
		return app.Usagef("--passive cannot be used with %s, because %s the recording proxy, which --passive does not start", strings.Join(wrong, ", "), flags)
	}
	return nil
}

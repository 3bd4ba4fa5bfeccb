package record

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	xterm "golang.org/x/term"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/trust"
	"unwire/mitm/ca"
)

func caCommand(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "ca",
		Short:   "Show the local CA, making it on first use; install, export or remove it",
		Example: "  unwire ca\n  unwire ca install --dry-run\n  unwire ca export -o unwire-ca.pem",
		Long: `ca prints where the CA certificate is. The CA is made on this machine on first
use; its key never leaves the folder, which only you can read. Nothing is
installed anywhere unless you ask for it with 'unwire ca install': commands run
by 'unwire capture' are told to trust it.`,
		Args: app.ExactArgs(),
		RunE: func(*cobra.Command, []string) error { return showCA(a, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.AddCommand(caStoreCommand(a, false), caStoreCommand(a, true), caExportCommand(a), caNewCommand(a))
	return cmd
}

func loadCA() (*ca.Authority, error) {
	dir, err := app.ConfigDir()
	if err != nil {
		return nil, err
	}
	return ca.Load(filepath.Join(dir, "ca"))
}

func showCA(a *app.App, asJSON bool) error {
	ca, err := loadCA()
	if err != nil {
		return err
	}
	return printCA(a, ca, asJSON)
}

func printCA(a *app.App, ca *ca.Authority, asJSON bool) error {
	cert := ca.Certificate
	print := fmt.Sprintf("%x", sha256.Sum256(cert.Raw))
	if asJSON {
		return a.Print(&contract.CA{File: ca.CertFile, SHA256: print, NotAfter: cert.NotAfter.Format("2006-01-02"), Hosts: ca.Hosts()})
	}
	fmt.Fprintf(a.Out, "%s\n", ca.CertFile)
	a.Say("SHA-256 %s, valid until %s", print, cert.NotAfter.Format("2006-01-02"))
	if hosts := ca.Hosts(); len(hosts) > 0 {
		a.Say("it vouches for %s alone; other hosts pass unread", strings.Join(hosts, ", "))
	}
	return nil
}

func caNewCommand(a *app.App) *cobra.Command {
	var hosts []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Make a new CA in the place of the one that is there",
		Long: `new makes a new key and a new certificate. What trusts the old CA does not trust the
new one: take the old one out of trust stores first, with 'unwire ca remove'.

With --hosts the CA vouches for these hosts and the names below them alone. Programs
that trust it accept no certificate for another host, whoever has the key, so it is
the one to put into a trust store. 'unwire capture' lets other hosts pass unread.`,
		Example: "  unwire ca new\n  unwire ca new --hosts api.example.com,127.0.0.1",
		Args:    app.ExactArgs(),
		RunE: func(*cobra.Command, []string) error {
			dir, err := app.ConfigDir()
			if err != nil {
				return err
			}
			authority, err := ca.New(filepath.Join(dir, "ca"), hosts)
			if errors.Is(err, ca.ErrHost) {
				return app.Usagef("--hosts: %w", err)
			}
			if err != nil {
				return err
			}
			return printCA(a, authority, asJSON)
		},
	}
	cmd.Flags().StringSliceVar(&hosts, "hosts", nil, "hosts that the CA is for, with commas; names cover those below them")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func caExportCommand(a *app.App) *cobra.Command {
	var out, format string
	cmd := &cobra.Command{
		Use:     "export [-o FILE]",
		Short:   "Write the CA certificate, without its key, as PEM or DER",
		Example: "  unwire ca export -o unwire-ca.pem\n  unwire ca export --format der -o unwire-ca.cer   # for phones and Windows",
		Args:    app.ExactArgs(),
		RunE: func(*cobra.Command, []string) error {
			if format != "pem" && format != "der" {
				return app.Usagef("--format is pem or der, not %q", format)
			}
			ca, err := loadCA()
			if err != nil {
				return err
			}
			cert := trust.Cert{Certificate: ca.Certificate, File: ca.CertFile}
			if format == "der" {
				return a.WriteBinary(cert.Raw, out)
			}
			if out == "" || out == "-" {
				_, err := a.Out.Write(cert.PEM())
				return err
			}
			return app.WholeFile(out, app.ForAll, func(w io.Writer) error { _, err := w.Write(cert.PEM()); return err })
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to write (default stdout)")
	cmd.Flags().StringVar(&format, "format", "pem", "pem or der")
	return cmd
}

type storeFlags struct {
	stores      []string
	yes, dryRun bool
	remove      bool
}

func caStoreCommand(a *app.App, remove bool) *cobra.Command {
	f := storeFlags{remove: remove}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Have the system, browsers or Java trust the local CA",
		Long: `install puts the CA into trust stores of this machine: whoever has its key could
then vouch for any site to you, so do it only where a program cannot be told
otherwise, and remove it afterwards. It asks before it changes anything; the
system's store needs administrator rights. --dry-run shows what would be done.

Stores: system (Debian, Fedora, Arch, SUSE, macOS, Windows), nss (Firefox and
Chrome, by certutil of libnss3-tools), java (the runtime of JAVA_HOME or PATH).`,
		Example: "  unwire ca install --dry-run\n  unwire ca install --store nss\n  unwire ca install --store system,java --yes",
		Args:    app.ExactArgs(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return changeStores(cmd.Context(), a, f) },
	}
	if remove {
		cmd.Use, cmd.Short = "remove", "Take the local CA out of trust stores again"
		cmd.Long = "remove takes the CA out of the stores that 'unwire ca install' put it into. The CA\nitself stays in its folder. A store that does not have it is left as it is."
		cmd.Example = "  unwire ca remove\n  unwire ca remove --store nss --yes"
	}
	cmd.Flags().StringSliceVar(&f.stores, "store", []string{"system"}, "system, nss or java; several with commas")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would be written and run, and do nothing")
	return cmd
}

// changeStores plans for all stores before it touches the first.
func changeStores(ctx context.Context, a *app.App, f storeFlags) error {
	ca, err := loadCA()
	if err != nil {
		return err
	}
	cert := trust.Cert{Certificate: ca.Certificate, File: ca.CertFile}
	home, err := os.UserHomeDir()
	if err != nil {
		return app.Fail(app.ExitInput, err, "set HOME")
	}
	m := trust.Machine{
		OS: runtime.GOOS, Home: home, JavaHome: os.Getenv("JAVA_HOME"),
		Admin: os.Geteuid() <= 0, LookPath: exec.LookPath,
	}
	var steps []trust.Step
	for _, store := range f.stores {
		if !slices.Contains([]trust.Store{trust.System, trust.NSS, trust.Java}, trust.Store(store)) {
			return app.Usagef("--store is system, nss or java, not %q", store)
		}
		more, err := m.Plan(trust.Store(store), cert, f.remove)
		if err != nil && !(f.dryRun && errors.Is(err, trust.ErrNotRoot)) {
			hint := ""
			if errors.Is(err, trust.ErrNotRoot) {
				hint = fmt.Sprintf("the same with sudo, for the same CA: sudo env UNWIRE_CONFIG=%s %s", filepath.Dir(filepath.Dir(cert.File)), strings.Join(os.Args, " "))
			}
			return app.Fail(app.ExitInput, err, hint)
		}
		steps = append(steps, more...)
	}
	if len(steps) == 0 {
		a.Say("unwire: nothing to do: the CA is not there")
		return nil
	}
	for _, s := range steps {
		fmt.Fprintln(a.Out, s)
	}
	if f.dryRun {
		return nil
	}
	if !f.yes {
		if err := confirm(a, fmt.Sprintf("Do this for %q?", cert.Name())); err != nil {
			return err
		}
	}
	if err := trust.Do(ctx, steps); err != nil {
		return app.Fail(app.ExitInput, err, "'--dry-run' prints the steps: they can be done by hand")
	}
	a.Say("unwire: done; programs that are running may have to be started again")
	return nil
}

// confirm asks on the terminal, and takes silence for a no.
func confirm(a *app.App, question string) error {
	f, ok := a.In.(*os.File)
	if !ok || !xterm.IsTerminal(int(f.Fd())) {
		return app.Fail(app.ExitUsage, errors.New("trust stores are not changed without being asked, and there is no terminal to ask on"),
			"say --yes, or --dry-run to see what would be done")
	}
	fmt.Fprintf(a.Err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.Input).ReadString('\n')
	if errors.Is(err, context.Canceled) {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); err != nil || answer != "y" && answer != "yes" {
		return app.Fail(app.ExitFinding, errors.New("nothing was changed"), "")
	}
	return nil
}

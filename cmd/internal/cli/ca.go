package cli

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

	"unwire/cmd/internal/trust"
	"unwire/mitm/ca"
)

func (a *app) caCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ca",
		Short: "Show the local CA, making it on first use; install, export or remove it",
		Long: `ca prints where the CA certificate is. The CA is made on this machine on first
use; its key never leaves the folder, which only you can read. Nothing is
installed anywhere unless you ask for it with 'unwire ca install': commands run
by 'unwire capture' are told to trust it.`,
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error { return a.showCA(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.AddCommand(a.caStoreCommand(false), a.caStoreCommand(true), a.caExportCommand())
	return cmd
}

func loadCA() (*ca.Authority, error) {
	dir, err := configDir()
	if err != nil {
		return nil, err
	}
	return ca.Load(filepath.Join(dir, "ca"))
}

func (a *app) showCA(asJSON bool) error {
	ca, err := loadCA()
	if err != nil {
		return err
	}
	cert := ca.Certificate()
	print := fmt.Sprintf("%x", sha256.Sum256(cert.Raw))
	if asJSON {
		return a.printJSON(struct {
			V        int    `json:"v"`
			File     string `json:"file"`
			SHA256   string `json:"sha256"`
			NotAfter string `json:"not_after"`
		}{1, ca.CertFile(), print, cert.NotAfter.Format("2006-01-02")})
	}
	fmt.Fprintf(a.out, "%s\n", ca.CertFile())
	a.say("SHA-256 %s, valid until %s", print, cert.NotAfter.Format("2006-01-02"))
	return nil
}

func (a *app) caExportCommand() *cobra.Command {
	var out, format string
	cmd := &cobra.Command{
		Use:     "export [-o FILE]",
		Short:   "Write the CA certificate, without its key, as PEM or DER",
		Example: "  unwire ca export -o unwire-ca.pem\n  unwire ca export --format der -o unwire-ca.cer   # for phones and Windows",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			if format != "pem" && format != "der" {
				return usagef("--format is pem or der, not %q", format)
			}
			ca, err := loadCA()
			if err != nil {
				return err
			}
			cert := trust.Cert{Certificate: ca.Certificate(), File: ca.CertFile()}
			if format == "der" {
				return a.writeBinary(cert.Raw, out)
			}
			if out == "" || out == "-" {
				_, err := a.out.Write(cert.PEM())
				return err
			}
			return wholeFile(out, forAll, func(w io.Writer) error { _, err := w.Write(cert.PEM()); return err })
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

func (a *app) caStoreCommand(remove bool) *cobra.Command {
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
		Args:    exactArgs(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.changeStores(cmd.Context(), f) },
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
func (a *app) changeStores(ctx context.Context, f storeFlags) error {
	ca, err := loadCA()
	if err != nil {
		return err
	}
	cert := trust.Cert{Certificate: ca.Certificate(), File: ca.CertFile()}
	home, err := os.UserHomeDir()
	if err != nil {
		return fail(exitInput, err, "set HOME")
	}
	m := trust.Machine{
		OS: runtime.GOOS, Home: home, JavaHome: os.Getenv("JAVA_HOME"),
		Admin: os.Geteuid() <= 0, LookPath: exec.LookPath,
	}
	var steps []trust.Step
	for _, store := range f.stores {
		if !slices.Contains([]trust.Store{trust.System, trust.NSS, trust.Java}, trust.Store(store)) {
			return usagef("--store is system, nss or java, not %q", store)
		}
		more, err := m.Plan(trust.Store(store), cert, f.remove)
		if err != nil && !(f.dryRun && errors.Is(err, trust.ErrNotRoot)) {
			hint := ""
			if errors.Is(err, trust.ErrNotRoot) {
				hint = fmt.Sprintf("the same with sudo, for the same CA: sudo env UNWIRE_CONFIG=%s %s", filepath.Dir(filepath.Dir(cert.File)), strings.Join(os.Args, " "))
			}
			return fail(exitInput, err, hint)
		}
		steps = append(steps, more...)
	}
	if len(steps) == 0 {
		a.say("unwire: nothing to do: the CA is not there")
		return nil
	}
	for _, s := range steps {
		fmt.Fprintln(a.out, s)
	}
	if f.dryRun {
		return nil
	}
	if !f.yes {
		if err := a.confirm(fmt.Sprintf("Do this for %q?", cert.Name())); err != nil {
			return err
		}
	}
	if err := trust.Do(ctx, steps); err != nil {
		return fail(exitInput, err, "'--dry-run' prints the steps: they can be done by hand")
	}
	a.say("unwire: done; programs that are running may have to be started again")
	return nil
}

// confirm asks on the terminal, and takes silence for a no.
func (a *app) confirm(question string) error {
	f, ok := a.in.(*os.File)
	if !ok || !xterm.IsTerminal(int(f.Fd())) {
		return fail(exitUsage, errors.New("trust stores are not changed without being asked, and there is no terminal to ask on"),
			"say --yes, or --dry-run to see what would be done")
	}
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.input).ReadString('\n')
	if errors.Is(err, context.Canceled) {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); err != nil || answer != "y" && answer != "yes" {
		return fail(exitFinding, errors.New("nothing was changed"), "")
	}
	return nil
}

package record

import (
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

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/trust"
	"unwire/mitm/ca"
)

// caCommand returns the command 'unwire ca', which manages the local CA certificate.
func caCommand(a *app.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ca",
		Short: "Show, create, install, export or remove the local CA certificate",
		Example: `  # Print the path of the certificate
  unwire ca
  # Show which changes an installation would make
  unwire ca install --dry-run
  # Write the certificate to a file, for programs that must trust it
  unwire ca export -o unwire-ca.pem`,
		Long: `unwire has a local certificate authority (CA), which signs the certificates of
unwire's proxy. ca prints the path of the CA's certificate. unwire creates the CA when
a command first needs the CA. The CA's private key never leaves the CA's folder, which
only you can read.

A command that 'unwire capture' runs trusts the CA, because capture sets environment
variables for it. Other programs trust the CA only if you add its certificate to a trust
store with 'unwire ca install'.`,
		Args: app.ExactArgs(),
		RunE: func(*cobra.Command, []string) error { return showCA(a, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print path, hash and last day of the certificate as one JSON object")
	cmd.AddCommand(caStoreCommand(a, false), caStoreCommand(a, true), caExportCommand(a), caNewCommand(a))
	return cmd
}

// loadCA loads the local CA from the configuration folder, and creates it if it does not exist.
func loadCA() (*ca.Authority, error) {
	dir, err := app.ConfigDir()
	if err != nil {
		return nil, err
	}
	return ca.Load(filepath.Join(dir, "ca"))
}

// showCA executes 'unwire ca': it loads and prints the CA.
func showCA(a *app.App, asJSON bool) error {
	ca, err := loadCA()
	if err != nil {
		return err
	}
	return printCA(a, ca, asJSON)
}

// printCA prints the certificate's file, its SHA-256 and last day of validity, as text or JSON.
func printCA(a *app.App, ca *ca.Authority, asJSON bool) error {
	cert := ca.Certificate
	print := fmt.Sprintf("%x", sha256.Sum256(cert.Raw))
	if asJSON {
		return a.Print(&contract.CA{File: ca.CertFile, SHA256: print, NotAfter: cert.NotAfter.Format("2006-01-02"), Hosts: ca.Hosts()})
	}
	fmt.Fprintf(a.Out, "%s\n", ca.CertFile)
	a.Say("SHA-256 %s, valid until %s", print, cert.NotAfter.Format("2006-01-02"))
	if hosts := ca.Hosts(); len(hosts) > 0 {
		a.Say("the CA can only sign certificates for %s; traffic to other hosts is not decrypted", strings.Join(hosts, ", "))
	}
	return nil
}

// caNewCommand returns the command 'unwire ca new', which replaces the CA.
func caNewCommand(a *app.App) *cobra.Command {
	var hosts []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Replace the local CA by a new one",
		Long: `new replaces the key and the certificate of the local CA. Programs that trust the old
certificate do not trust the new one. Before you replace a CA that is installed,
remove it from the trust stores with 'unwire ca remove'.

With --hosts, the new CA can sign certificates only for these hosts and their subdomains
(X.509 name constraints). Somebody who steals the CA's key can then impersonate only
these hosts. So use --hosts if you install the CA in a trust store. 'unwire capture'
forwards the traffic of all other hosts without decrypting it.`,
		Example: `  # Create a new key and a new certificate
  unwire ca new
  # Create a CA that can sign only for two hosts and their subdomains
  unwire ca new --hosts api.example.com,127.0.0.1`,
		Args: app.ExactArgs(),
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
	cmd.Flags().StringSliceVar(&hosts, "hosts", nil, "create a CA that can sign certificates only for these hosts and their subdomains; separate several hosts by commas")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print path, hash and last day of the certificate as one JSON object")
	return cmd
}

// caExportCommand returns the command 'unwire ca export', which writes the certificate without the key.
func caExportCommand(a *app.App) *cobra.Command {
	var out, format string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the CA certificate, without its key, as PEM or DER",
		Example: `  # Write a PEM file, which most programs can read
  unwire ca export -o unwire-ca.pem
  # Write a DER file, for phones and Windows
  unwire ca export --format der -o unwire-ca.cer`,
		Args: app.ExactArgs(),
		RunE: func(*cobra.Command, []string) error {
			if format != "pem" && format != "der" {
				return app.Usagef("--format must be pem or der, not %q", format)
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
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to which the certificate is written (default stdout)")
	cmd.Flags().StringVar(&format, "format", "pem", "format of the certificate: pem or der")
	return cmd
}

// storeFlags are the values of the flags of 'unwire ca install' and 'unwire ca remove'.
type storeFlags struct {
	// stores are the trust stores to change: system, nss or java.
	stores []string

	// yes does not ask for confirmation.
	yes bool

	// dryRun only prints the steps.
	dryRun bool

	// remove is true for 'ca remove', and false for 'ca install'.
	remove bool
}

// caStoreCommand returns the command 'unwire ca install' or, if remove is set, 'unwire ca remove'.
func caStoreCommand(a *app.App, remove bool) *cobra.Command {
	f := storeFlags{remove: remove}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the local CA in the trust store of the system, browsers or Java",
		Long: `install adds the certificate of unwire's local CA to trust stores of this
machine. Programs that use such a store then trust every certificate that the CA signs.
Anybody who steals the CA's key can therefore impersonate any web site to you. Install
the CA only if a program cannot trust it in another way, and afterwards remove it with
'unwire ca remove'. install asks for confirmation before it changes anything. To change
the system's store, you need administrator rights. --dry-run prints the steps without
executing them.

--store system means the trust store of the operating system (Debian, Fedora, Arch,
SUSE, macOS, Windows). --store nss means the trust stores of Firefox and Chrome, and
needs the program certutil from the package libnss3-tools. --store java means the trust
store of the Java installation in JAVA_HOME or PATH.`,
		Example: `  # Print the steps, but change nothing
  unwire ca install --dry-run
  # Let Firefox and Chrome trust the CA
  unwire ca install --store nss
  # Let the system and Java trust the CA, without confirmation
  unwire ca install --store system,java --yes`,
		Args: app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return changeStores(cmd.Context(), a, f) },
	}
	if remove {
		cmd.Use, cmd.Short = "remove", "Remove the local CA from trust stores"
		cmd.Long = "remove removes the certificate of unwire's local CA from the trust stores to which 'unwire ca install'\nadded it. remove does not delete the files of the CA, and does not change stores that lack the certificate."
		cmd.Example = `  # Remove the CA from the system's trust store
  unwire ca remove
  # Remove the CA from Firefox and Chrome, without confirmation
  unwire ca remove --store nss --yes`
	}
	cmd.Flags().StringSliceVar(&f.stores, "store", []string{"system"}, "trust store to change: system, nss or java; separate several by commas")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print which files would be written and which commands would be run, but change nothing")
	return cmd
}

// changeStores installs the CA in trust stores, or removes it from them. It plans all changes before it
// makes the first one.
func changeStores(ctx context.Context, a *app.App, f storeFlags) error {
	ca, err := loadCA()
	if err != nil {
		return err
	}
	cert := trust.Cert{Certificate: ca.Certificate, File: ca.CertFile}
	home, err := os.UserHomeDir()
	if err != nil {
		return app.Fail(app.ExitInput, err, "set the environment variable HOME to your home folder")
	}
	m := trust.Machine{
		OS: runtime.GOOS, Home: home, JavaHome: os.Getenv("JAVA_HOME"),
		Admin: os.Geteuid() <= 0, LookPath: exec.LookPath,
	}

	// Plan all stores before changing any, so that an unsupported one changes nothing.
	var steps []trust.Step
	for _, store := range f.stores {
		if !slices.Contains([]trust.Store{trust.System, trust.NSS, trust.Java}, trust.Store(store)) {
			return app.Usagef("--store must be system, nss or java, not %q", store)
		}
		// A dry run may plan steps that need root.
		more, err := m.Plan(trust.Store(store), cert, f.remove)
		if err != nil && !(f.dryRun && errors.Is(err, trust.ErrNotRoot)) {
			hint := ""
			if errors.Is(err, trust.ErrNotRoot) {
				hint = fmt.Sprintf("run the command with sudo, with the same CA folder: sudo env UNWIRE_CONFIG=%s %s", filepath.Dir(filepath.Dir(cert.File)), strings.Join(os.Args, " "))
			}
			return app.Fail(app.ExitInput, err, hint)
		}
		steps = append(steps, more...)
	}
	if len(steps) == 0 {
		a.Say("unwire: nothing to do: no trust store has the CA")
		return nil
	}

	// Show the steps before asking for a confirmation.
	a.Say("unwire: steps that change the trust stores:")
	for _, s := range steps {
		fmt.Fprintln(a.Out, s)
	}
	if f.dryRun {
		return nil
	}
	if !f.yes {
		if err := a.Confirm(fmt.Sprintf("Make these changes to %q?", cert.Name())); err != nil {
			return err
		}
	}
	if err := trust.Do(ctx, steps); err != nil {
		return app.Fail(app.ExitInput, err, "'--dry-run' prints the steps, so that you can do them by hand")
	}
	a.Say("unwire: done; restart programs that are already running")
	return nil
}

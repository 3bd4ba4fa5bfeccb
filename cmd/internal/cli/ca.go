package cli

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"unwire/mitm"
)

func (a *app) caCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ca",
		Short: "Show the local CA, making it on first use",
		Long: `ca prints where the CA certificate is. The CA is made on this machine on first
use; its key never leaves the folder, which only you can read. Nothing is
installed anywhere: commands run by 'unwire capture' are told to trust it.`,
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error { return a.showCA(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func (a *app) showCA(asJSON bool) error {
	dir, err := configDir()
	if err != nil {
		return err
	}
	ca, err := mitm.LoadCA(filepath.Join(dir, "ca"))
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

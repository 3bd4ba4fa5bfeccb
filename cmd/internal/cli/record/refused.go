package record

import (
	"path/filepath"
	"strconv"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/contract"
	"unwire/cmd/internal/render/capturetext"
	"unwire/mitm/access"
	"unwire/mitm/launch"
	"unwire/mitm/refusal"
)

// sayRefusedUser warns that the proxy rejected a connection of another user of this machine.
func sayRefusedUser(a *app.App, u access.User, json bool) {
	a.Say("unwire: warning: rejected a connection to the proxy from %s: use --share to accept other users of this machine", u)
	if json {
		// stdout may be gone: the traffic goes on
		_ = a.Print(&contract.RefusedUser{Event: "refused-user", UID: u.UID, Name: u.Name})
	}
}

// sayRefusedCertificate warns that a client rejected the proxy's certificate, and prints how to make that
// client trust the CA in caFile.
func sayRefusedCertificate(a *app.App, r refusal.Refusal, caFile string, json bool) {
	caller := launch.Inspect(filepath.Join("/proc", strconv.Itoa(r.Process.PID), "exe"))
	if caller == "" && r.Process.Name != "" { // it may have ended
		caller = launch.Inspect(r.Process.Name)
	}
	fix := capturetext.TrustFix(r, caller, caFile)
	a.Say("unwire: warning: %s", capturetext.RefusedCertificate(r))
	a.Say("unwire: hint: %s", fix)
	if json {
		// stdout may be gone: the traffic goes on
		_ = a.Print(&contract.RefusedCertificate{
			Event: "refused-certificate", Host: r.Host, Process: contract.NewProcess(r.Process), Fix: fix,
		})
	}
}

// Package record has the commands that make captures: capture, import, and what they
// need of the machine (ca, doctor), and version.
//
// Traffic comes to capture in four ways: through a proxy, by a reverse listener in
// front of an origin, transparently from a network namespace, or passively as
// packets, with a key log that opens their TLS. A passive capture that was killed is
// recovered from its folder. While it records, capture reports what it could not
// search for secrets (unsearched), and servers that an answer names and that nobody
// captures (uncaptured).
//
// Text for people is printed by package capturetext, JSON by the types of package
// contract. The work is done by mitm, mitm/launch, captures/pcap, captures/formats,
// and the packages trust and doctor.
package record

import (
	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/cli/workbench"
)

// Commands returns the commands that record and import: capture, import, intercept, ca, doctor, version.
// run executes unwire commands for the web page of 'capture --ui'.
func Commands(a *app.App, run workbench.Runner) []*cobra.Command {
	return []*cobra.Command{
		captureCommand(a, run),
		interceptCommand(a),
		namespaceCommand(a),
		importCommand(a),
		caCommand(a),
		doctorCommand(a),
		versionCommand(a),
	}
}

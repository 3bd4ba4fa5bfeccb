package capturetext

import (
	"fmt"
	"path/filepath"
	"strings"

	"unwire/mitm/launch"
	"unwire/mitm/refusal"
)

// A trustFix describes how to make one kind of program trust a CA.
type trustFix struct {
	// names are the names of executables, separated by spaces. A name of four or more letters also matches
	// all names that begin with it; = before a name requires an exact match.
	names string

	// fix is a shell command or an instruction, in which %[1]s stands for the path of the CA's file.
	fix string
}

// trustFixes lists the programs for which a specific instruction is known.
var trustFixes = []trustFix{
	{"curl", "run it with --cacert %[1]s, or set CURL_CA_BUNDLE=%[1]s"},
	{"wget", "run it with --ca-certificate=%[1]s, or put ca_certificate=%[1]s into its ~/.wgetrc"},
	{"git git-remote-", "set GIT_SSL_CAINFO=%[1]s"},
	{"node npm npx", "set NODE_EXTRA_CA_CERTS=%[1]s"},
	{"bun", "set NODE_EXTRA_CA_CERTS=%[1]s"},
	{"deno", "set DENO_CERT=%[1]s"},
	{"python pip uv", "set REQUESTS_CA_BUNDLE=%[1]s (requests, pip), SSL_CERT_FILE=%[1]s (others) or\nGRPC_DEFAULT_SSL_ROOTS_FILE_PATH=%[1]s (grpcio)"},
	{"java", "import %[1]s into Java's trust store with keytool -importcert -cacerts, or run the program by\n'unwire capture -- CMD', which configures a trust store with JAVA_TOOL_OPTIONS"},
	{"ruby", "set SSL_CERT_FILE=%[1]s"},
	{"perl", "set PERL_LWP_SSL_CA_FILE=%[1]s, or SSL_CERT_FILE=%[1]s"},
	{"php", "run it with -d curl.cainfo=%[1]s -d openssl.cafile=%[1]s"},
	{"dotnet", "set SSL_CERT_FILE=%[1]s"},
	{"cargo", "set CARGO_HTTP_CAINFO=%[1]s"},
	{"apt =http =https", "run apt with -o Acquire::https::CAInfo=%[1]s"},
	{"chrom google-chrome chrome msedge brave opera vivaldi firefox", "record a browser with 'unwire capture --browser URL', or import\n%[1]s into the browser's certificate authorities"},
	{"go", goFix},
}

// maxExact is the length up to which names of executables are compared as a whole.
const maxExact = 3

const (
	goFix    = "on Linux, set SSL_CERT_FILE=%[1]s for a Go program; on other systems,\ninstall the CA in the system's trust store ('unwire ca install')"
	otherFix = "set SSL_CERT_FILE=%[1]s, which many programs use; for others, use\nthe system's trust store ('unwire ca install') or the program's own option"
)

// RefusedCertificate says which program rejected the proxy's certificate.
func RefusedCertificate(r refusal.Refusal) string {
	who := "a program"
	switch p := r.Process; {
	case p.Name != "" && p.PID != 0:
		who = fmt.Sprintf("%s (process %d)", p.Name, p.PID)
	case p.PID != 0:
		who = fmt.Sprintf("process %d", p.PID)
	}
	return fmt.Sprintf("%s rejected the proxy's certificate for %s, so this traffic is not recorded", who, r.Host)
}

// TrustFix describes how the program that rejected the proxy's certificate can be made to trust the CA in
// caFile. caller is the language runtime of the program.
func TrustFix(r refusal.Refusal, caller launch.Runtime, caFile string) string {
	return fmt.Sprintf(trustFixOf(r.Process.Name, caller), caFile) +
		".\nIf the program already trusts the CA, it pins the server's certificate, and no proxy can decrypt its traffic:\n" +
		"'unwire capture --passive -- CMD' can record it if the program logs its TLS keys"
}

// trustFixOf returns the instruction for an executable with a name or, if that is not known, for its
// language runtime.
func trustFixOf(name string, caller launch.Runtime) string {
	name = strings.ToLower(filepath.Base(name))
	for _, f := range trustFixes {
		for prefix := range strings.FieldsSeq(f.names) {
			if exact, ok := strings.CutPrefix(prefix, "="); ok && name == exact || name == prefix || strings.HasPrefix(name, prefix) && len(prefix) > maxExact {
				return f.fix
			}
		}
	}
	switch caller {
	case launch.Node, launch.NodeSEA, launch.Bun:
		return "set NODE_EXTRA_CA_CERTS=%[1]s"
	case launch.Deno:
		return "set DENO_CERT=%[1]s"
	case launch.Electron:
		return "set NODE_EXTRA_CA_CERTS=%[1]s for the Node part; for the windows, add the CA to\nChromium's authorities: certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n unwire -i %[1]s"
	case launch.Go:
		return goFix
	}
	return otherFix
}

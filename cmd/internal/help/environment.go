package help

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// A variable is an environment variable that unwire reads or sets.
type variable struct {
	Name    string
	Meaning string

	// Commands are the paths of the commands that read it, without "unwire"; empty for
	// all.
	Commands []string

	// Internal variables are for unwire's own processes, and for its tests.
	Internal bool
}

var (
	sending   = []string{"replay", "replay suite", "replay verify", "probe", "serve", "credentials"}
	recording = []string{"capture"}
)

// environment is the one table of environment variables.
var environment = []variable{
	{Name: "UNWIRE_CONFIG", Meaning: "folder of the local CA and of settings (default: unwire in the user's configuration folder)", Commands: []string{"ca", "capture", "doctor", "standin"}},
	{Name: "UNWIRE_MAX_READ", Meaning: "largest body of an exchange that is read into memory, such as 512MB"},
	{Name: "UNWIRE_PROTO", Meaning: "definitions that commands use if --proto is not given"},
	{Name: "UNWIRE_PAGER, PAGER", Meaning: "program that shows long output on a terminal", Commands: []string{"show"}},
	{Name: "COLUMNS", Meaning: "width of the terminal, if it does not tell"},
	{Name: "UNWIRE_TOKEN", Meaning: "bearer token of requests, in place of a recorded one", Commands: sending},
	{Name: "UNWIRE_COOKIE", Meaning: "cookie header of requests, in place of a recorded one", Commands: sending},
	{Name: "UNWIRE_API_KEY", Meaning: "API key, which --refresh exchanges for a token", Commands: []string{"replay", "credentials"}},
	{Name: "UNWIRE_HEADER_*", Meaning: "value of a secret header, named in upper case with _ for -: UNWIRE_HEADER_X_API_KEY is x-api-key", Commands: sending},
	{Name: "UNWIRE_QUERY_*", Meaning: "value of a secret query parameter, named as for headers", Commands: sending},
	{Name: "UNWIRE_SECRET_*", Meaning: "value of the redacted secret with this tag, wherever it is in a request: UNWIRE_SECRET_3F2A9C1B", Commands: sending},
	{Name: "UNWIRE_MACHINE_ID", Meaning: "machine id that a computed header is made of", Commands: []string{"replay", "replay suite", "serve"}},
	{Name: "UNWIRE_SERVE_KEY", Meaning: "API keys that clients may send, separated by spaces", Commands: []string{"serve"}},
	{Name: "UNWIRE_STANDIN_TOKEN", Meaning: "the only token that the stand-in accepts (default: any)", Commands: []string{"standin"}},
	{Name: "UNWIRE_HEADER_NAME, UNWIRE_METHOD, UNWIRE_URL", Meaning: "set for the command of --header-from: the header's name, the request's method and URL", Commands: []string{"replay", "replay suite"}},
	{Name: "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY", Meaning: "proxy that recorded requests are sent through, and hosts that are reached directly; also in lower case", Commands: recording},
	{Name: "JAVA_HOME", Meaning: "Java installation whose trust store gets the CA", Commands: []string{"ca install", "ca remove"}},
	{Name: "VISUAL, EDITOR", Meaning: "editor that --edit opens", Commands: []string{"replay"}},
	{Name: "SSL_CERT_FILE, SSLKEYLOGFILE", Meaning: "CA file and TLS key log of the demo's client, which capture sets", Commands: []string{"demo-client"}, Internal: true},
	{Name: "HOME", Meaning: "home folder, for the trust store of a started browser", Commands: recording},
	{Name: "XDG_RUNTIME_DIR", Meaning: "folder for the sockets of running recorders (default: the folder for temporary files)"},
	{Name: "GOGC", Meaning: "turns off unwire's own limit for the garbage collector if it is set"},
	{Name: "NO_COLOR, TERM", Meaning: "no colours if NO_COLOR is set or TERM is dumb, unless --color says otherwise"},
	{Name: "UNWIRE_NAMESPACE_IPV6, UNWIRE_NAMESPACE_PACKETS", Meaning: "tell the process in a network namespace what to set up", Internal: true},
	{Name: "UNWIRE_HOOK_TOKEN", Meaning: "connects a Node process to the recorder that started it", Internal: true},
	{Name: "UNWIRE_DEMO_URL, UNWIRE_DEMO_TOKEN, UNWIRE_DEMO_DESCRIPTORS", Meaning: "tell the demo's Node client what to call", Internal: true},
	{Name: "UNWIRE_EVAL, UNWIRE_LONG, UNWIRE_SEED", Meaning: "choose what tests do", Internal: true},
}

// variablesOf are the variables that a command reads, apart from those that all do.
func variablesOf(cmd *cobra.Command) []variable {
	path := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	var list []variable
	for _, v := range environment {
		if !v.Internal && (path == environmentTopic || slices.Contains(v.Commands, path)) {
			list = append(list, v)
		}
	}
	return list
}

// environmentTopic is what `unwire help environment` is about.
const environmentTopic = "environment"

// EnvironmentCommand is the topic that lists the variables.
func EnvironmentCommand() *cobra.Command {
	return &cobra.Command{
		Use:   environmentTopic,
		Short: "Environment variables",
		Long:  "unwire reads these variables. Flags go before them.",
	}
}

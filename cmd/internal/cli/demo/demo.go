package democmd

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"unwire/cmd/internal/app"
	"unwire/cmd/internal/cli/record"
	"unwire/cmd/internal/demo"
	"unwire/cmd/internal/term"
	"unwire/mitm/launch"
	"unwire/replay/credential"
	"unwire/replay/standin"
)

// demoFile is the file name of the capture that the demo writes. If the file exists, a number is
// inserted before its extension.
const demoFile = "unwire-demo.uwc"

// demoFlags are the values of the flags of 'unwire demo'.
type demoFlags struct {
	// out is the path of the capture to write.
	out string

	// nodeClient is the folder of the additional Node client; "" for none.
	nodeClient string
}

// demoCommand returns the command 'unwire demo'.
func demoCommand(a *app.App) *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the main functions of unwire with a local client and server",
		Example: `  # Run the demo
  unwire demo
  # Choose the name of the capture that the demo leaves behind
  unwire demo -o demo.uwc`,
		Long: `demo shows the main functions of unwire, and sends no data to other machines.
demo starts a local server ('unwire standin') and a recording proxy, and runs a client
through the proxy. The client uses connect-go; with --node-client, demo also runs a
connect-es client on Node. From the recorded traffic, demo then prints the decoded
messages, the answer in the chat, and the inferred types of fields. demo also compares
the messages with .proto definitions, and sends an edited request again. The capture
file remains, so that you can examine it with other commands.`,
		Args: app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), a, f) },
	}
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "capture file that demo writes (default "+demoFile+"; if this file exists, a name with a number)")
	cmd.Flags().StringVar(&f.nodeClient, "node-client", "", "also run the demo's Node client, which is in this folder; its npm packages must be installed")
	return cmd
}

// runDemo executes 'unwire demo': it records the demo's clients against a local stand-in server, and then
// prints what the other commands find in that capture.
func runDemo(ctx context.Context, a *app.App, f demoFlags) error {
	if f.out == "" {
		var err error
		if f.out, err = freeName(demoFile); err != nil {
			return err
		}
	}
	s, err := newDemoServer()
	if err != nil {
		return err
	}
	defer a.Shutdown(s.server.Shutdown)
	clients, note, err := recordDemo(ctx, a, s, f)
	if err != nil {
		return err
	}
	r := &demoReport{app: a, file: f.out, server: s}
	return r.print(ctx, clients, note)
}

// freeName returns name or, if that file exists, name with the first number that makes it unused.
func freeName(name string) (string, error) {
	ext := filepath.Ext(name)
	for n := 1; n < 10_000; n++ {
		candidate := name
		if n > 1 {
			candidate = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
		}
		if _, err := os.Lstat(candidate); errors.Is(err, os.ErrNotExist) {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("the files %s and 9,999 numbered variants exist: delete some of them", name)
}

// A demoServer is a running stand-in for the recorded API's server. It accepts only a random token, which
// the demo's clients get.
type demoServer struct {
	// server is the stand-in server.
	server *standin.Server

	// url is the base URL of the server.
	url string

	// token is the bearer token that the server accepts.
	token string
}

// newDemoServer starts the stand-in server on a free port of 127.0.0.1.
func newDemoServer() (*demoServer, error) {
	token := make([]byte, 16)
	rand.Read(token) //nolint:errcheck // it never fails
	s := &demoServer{token: "demo-" + hex.EncodeToString(token)}
	var err error
	if s.server, err = standin.New(standin.Options{Seed: 1, Token: s.token}); err != nil {
		return nil, err
	}
	ln, err := s.server.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.url = "https://" + ln.Addr().String()
	go func() { _ = s.server.Serve(ln) }()
	return s, nil
}

// recordDemo runs the demo's clients through a recording proxy, and returns for the report the names of the
// clients that ran, and a note about a client that did not run.
func recordDemo(ctx context.Context, a *app.App, s *demoServer, f demoFlags) (clients []string, note string, err error) {
	rec, err := record.StartRecorder(a, record.CaptureFlags{Out: f.out, Listen: "127.0.0.1:0", UpstreamCA: s.server.CAFile, UpstreamProxy: "none", Unsearched: new(record.UnsearchedLog)}, rand.Text())
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, rec.Close(record.DrainTime(a))) }()

	// The demo client is this program itself, so that the demo needs no other tool.
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	env := []string{credential.EnvToken + "=" + s.token}
	if err := runDemoClient(ctx, a, rec, []string{self, "demo-client", "--url", s.url}, env); err != nil {
		return nil, "", fmt.Errorf("the connect-go client failed: %w", err)
	}
	clients = append(clients, "connect-go")
	if f.nodeClient == "" {
		return clients, "To record a Node client, too, use --node-client DIR", nil
	}

	// The Node client is optional: without Node, the demo continues.
	temp, err := os.MkdirTemp("", "unwire-demo-")
	if err != nil {
		return clients, "", err
	}
	defer os.RemoveAll(temp) //nolint:errcheck // a temporary folder
	argv, env, err := demo.NodeCommand(f.nodeClient, temp, demo.ClientOptions{URL: s.url, Token: s.token})
	if errors.Is(err, demo.ErrNoNode) {
		return clients, "No Node client was recorded: " + app.PlainText(err), nil
	}
	if err != nil {
		return clients, "", err
	}
	if err := runDemoClient(ctx, a, rec, argv, env); err != nil {
		return clients, "", fmt.Errorf("the Node client failed: %w", err)
	}
	return append(clients, "connect-es on Node "+nodeVersion(argv[0])), "", nil
}

// runDemoClient runs one client through the proxy, as 'unwire capture -- CMD' does. argv is its command
// line, and env are additional environment variables. The client's output is shown only if it fails.
func runDemoClient(ctx context.Context, a *app.App, rec *record.Recorder, argv, env []string) error {
	var said bytes.Buffer
	code, err := launch.Run(ctx, launch.Options{
		Argv: argv, Env: append(os.Environ(), env...), ProxyURL: "http://" + rec.Addr, CAFile: rec.CA.CertFile, ControlToken: rec.Token,
		Stdin: strings.NewReader(""), Stdout: &said, Stderr: &said,
	})
	if err == nil && code != 0 {
		err = fmt.Errorf("the client ended with exit status %d", code)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, strings.TrimSpace(said.String()))
	}
	return nil
}

// nodeVersion returns what the program node prints for --version; "" if it cannot be run.
func nodeVersion(node string) string {
	out, err := exec.Command(node, "--version").Output()
	if err != nil {
		return ""
	}
	return term.Clean(strings.TrimSpace(string(out)))
}

// target returns the parsed URL of the server.
func (s *demoServer) target() (*url.URL, error) { return url.Parse(s.url) }

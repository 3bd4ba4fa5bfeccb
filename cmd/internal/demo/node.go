package demo

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Environment variables of the Node client, which node/client.mjs reads.
const (
	nodeURLVar         = "UNWIRE_DEMO_URL"
	nodeTokenVar       = "UNWIRE_DEMO_TOKEN"
	nodeDescriptorsVar = "UNWIRE_DEMO_DESCRIPTORS"
)

// ErrNoNode is the error if the demo's Node client cannot run on this machine; the wrapping error names
// what is missing.
var ErrNoNode = errors.New("the Node client cannot run")

// NodeCommand returns the command line and the additional environment variables that run the Node client
// in the folder dir (cmd/internal/demo/node of the source tree, with its packages installed) against
// o.URL. It writes the descriptor set that the client needs into tempDir. The caller must make Node trust
// o.CAFile or the proxy's CA, because NODE_EXTRA_CA_CERTS names a single file.
//
// Errors: ErrNoNode.
func NodeCommand(dir, tempDir string, o ClientOptions) (argv, env []string, err error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, nil, fmt.Errorf("demo: %w: PATH does not contain node", ErrNoNode)
	}
	for _, name := range []string{"client.mjs", "node_modules/@connectrpc/connect-node/package.json"} {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return nil, nil, fmt.Errorf("demo: %w: %s has no %s (`make node-deps` installs its packages)", ErrNoNode, dir, name)
		}
	}
	script, err := filepath.Abs(filepath.Join(dir, "client.mjs"))
	if err != nil {
		return nil, nil, fmt.Errorf("demo: %w", err)
	}
	set, err := descriptorSet()
	if err != nil {
		return nil, nil, err
	}
	descriptors := filepath.Join(tempDir, "descriptors.binpb")
	if err := os.WriteFile(descriptors, set, 0o644); err != nil {
		return nil, nil, fmt.Errorf("demo: %w", err)
	}
	env = []string{nodeURLVar + "=" + o.URL, nodeTokenVar + "=" + o.Token, nodeDescriptorsVar + "=" + descriptors}
	return []string{node, script}, env, nil
}

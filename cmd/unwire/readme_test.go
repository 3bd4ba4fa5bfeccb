package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"unwire/captures/need"
)

// shFence finds the commands that a document shows. The word behind sh names one of
// journeys; blocks of the same folder follow each other.
var shFence = regexp.MustCompile("(?ms)^```sh (\\w+)\n(.*?)^```$")

// A journey is what a block of README.md finds in its folder, and what it must print.
type journey struct {
	// after, if set, is the journey whose folder it goes on in.
	after string

	// prepare, if set, makes what the commands find in their folder besides the shop's CA.
	prepare func(t *testing.T, dir string, shop *shop)

	// prints are parts of what the commands print.
	prints []string
}

var journeys = map[string]journey{
	"service": {
		prepare: func(t *testing.T, dir string, _ *shop) {
			if runtime.GOOS != "linux" {
				t.Skip("capture --transparent is for Linux")
			}
			buildProgram(t, filepath.Join(dir, "client"), "./testdata/shop/client")
			writeFile(t, filepath.Join(dir, "proto", "shop.proto"), readFile(t, "testdata/shop/shop.proto"))
		},
		prints: []string{"shop.v1.Orders/PlaceOrder", "customer_id", "ship_to", "12 Harbour Road", "shop.v1.PlaceOrderResponse"},
	},
	"start": {prepare: prepareUnknown, prints: []string{"shop.v1.Orders/PlaceOrder", "TEA-OOLONG-100"}},
	"unknown": {
		prepare: prepareUnknown,
		prints:  []string{"shop.v1.Orders/PlaceOrder", "would decide", "shop/v1/inferred.proto", "an order needs at least one item"},
	},
	"definitions": {prepare: prepareDefinitions, prints: []string{" 2 unknown", "outdated", "changed 2 elements in ", " 0 unknown"}},
	"names":       {after: "definitions", prints: []string{"shop.v1.PlaceOrderResponse", "warnings", "found the names of 21 fields"}},
	"demo":        {prints: []string{"composer"}},
	"mock":        {prints: []string{"composer-1"}},
	"clientprobe": {prints: []string{"read\t/agent.v1.AgentService/GetUsableModels\tmodels.modelId", "not read\t/agent.v1.AgentService/GetUsableModels\tmodels.displayName"}},
	"serve":       {prints: []string{"chat.completion"}},
}

func prepareUnknown(t *testing.T, dir string, _ *shop) {
	t.Helper()
	copyNodeClient(t, dir)
}

// prepareDefinitions makes two versions of a client, and a capture of the newer one.
func prepareDefinitions(t *testing.T, dir string, shop *shop) {
	t.Helper()
	packClients(t, dir)
	copyNodeClient(t, dir)
	capture := exec.Command(shop.unwire, "capture", "-o", "F.uwc", "--upstream-ca", "ca.pem", "--", "node", "client.mjs")
	capture.Dir, capture.Env = dir, append(os.Environ(), shop.environment(dir)...)
	if out, err := capture.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestReadme runs the commands that README.md and those of packages show, each as it stands
// there.
func TestReadme(t *testing.T) {
	t.Parallel()
	need.Program(t, "curl", "curl")
	text := readFile(t, "../../README.md") + readFile(t, "../../replay/gateway/README.md") + readFile(t, "../../replay/mock/README.md") + readFile(t, "../../replay/clientprobe/README.md") + readFile(t, "../../replay/standin/README.md")
	blocks := shFence.FindAllStringSubmatch(text, -1)
	if n := strings.Count(text, "```sh"); n != len(blocks) {
		t.Errorf("%d blocks of commands, %d with the name of a journey", n, len(blocks))
	}
	shop := startShop(t)
	folders := map[string]string{}
	for _, block := range blocks {
		name, commands := block[1], block[2]
		j, ok := journeys[name]
		if !ok {
			t.Errorf("no journey %q", name)
			continue
		}
		dir := folders[j.after]
		if dir == "" {
			dir = t.TempDir()
		}
		folders[name] = dir
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(dir, "F.uwc")); j.after != "" && err != nil {
				t.Skipf("%s made no capture", j.after)
			}
			writeFile(t, filepath.Join(dir, "ca.pem"), readFile(t, shop.ca))
			if j.prepare != nil {
				j.prepare(t, dir, shop)
			}
			out := runCommands(t, commands, dir, shop)
			for _, want := range j.prints {
				if !strings.Contains(out, want) {
					t.Errorf("nothing of %q in\n%s", want, out)
				}
			}
		})
	}
	for name := range journeys {
		if folders[name] == "" {
			t.Errorf("no document shows commands for %s", name)
		}
	}
}

// runCommands runs commands in a shell, each as a user types it, and returns what they
// print. A command may end with 1, for something that it found or that differs, and with
// 64 and a Connect code, for what the server said.
func runCommands(t *testing.T, commands, dir string, shop *shop) string {
	t.Helper()
	standin, server := freeAddress(t), freeAddress(t)
	commands = strings.NewReplacer("127.0.0.1:9440", shop.address, "127.0.0.1:9443", standin, "127.0.0.1:8787", server).Replace(commands)
	// A second may be too short for a program in the background.
	ready := "[ -s standin.pem ]"
	if strings.Contains(commands, server) {
		ready = "curl -so /dev/null http://" + server + "/healthz"
	}
	commands = strings.ReplaceAll(commands, "sleep 1\n", "until "+ready+"; do kill -0 $!; sleep 0.1; done\n")
	script := new(strings.Builder)
	fmt.Fprintln(script, "set -u\ntrap '[ -z \"${!-}\" ] || kill $!' EXIT")
	for line := range strings.Lines(commands) {
		script.WriteString(line)
		if !strings.HasSuffix(line, "\\\n") {
			fmt.Fprintln(script, "status=$?; [ $status -le 1 ] || [ $status -gt 64 ] && [ $status -le 80 ] || exit $status")
		}
	}
	cmd := exec.Command("sh", "-c", script.String())
	cmd.Dir, cmd.Env = dir, append(os.Environ(), shop.environment(dir)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s\n%s", err, commands, out.Bytes())
	}
	return out.String()
}

// A shop is the server of README.md's examples.
type shop struct {
	unwire      string // the program, built as a user does
	address, ca string
}

func startShop(t *testing.T) *shop {
	t.Helper()
	dir := t.TempDir()
	s := &shop{unwire: filepath.Join(dir, "bin", "unwire"), address: freeAddress(t), ca: filepath.Join(dir, "ca.pem")}
	buildProgram(t, s.unwire, ".")
	server := filepath.Join(dir, "server")
	buildProgram(t, server, "./testdata/shop/server")
	cmd := exec.Command(server, s.address, s.ca)
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	// The first line says that it listens.
	if _, err := output.Read(make([]byte, 100)); err != nil {
		t.Fatal("the server has ended:", err)
	}
	return s
}

// environment is that of commands in dir.
func (s *shop) environment(dir string) []string {
	return []string{
		"PATH=" + filepath.Dir(s.unwire) + ":" + os.Getenv("PATH"), "UNWIRE_CONFIG=" + filepath.Join(dir, "config"),
		"SHOP=" + s.address, "SSL_CERT_FILE=" + s.ca, "NODE_EXTRA_CA_CERTS=" + s.ca,
	}
}

func buildProgram(t *testing.T, name, pkg string) {
	t.Helper()
	if out, err := exec.Command("go", "build", "-o", name, pkg).CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
}

// copyNodeClient puts the Node client of the shop into dir.
func copyNodeClient(t *testing.T, dir string) {
	t.Helper()
	need.Program(t, "node", "nodejs")
	modules, err := filepath.Abs("testdata/shop/node/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, ".installed")); err != nil {
		t.Skip("the shop's Node client is not installed: make node-deps")
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "client.mjs"), readFile(t, "testdata/shop/node/client.mjs"))
	writeFile(t, filepath.Join(dir, "shop.proto"), readFile(t, "testdata/shop/shop.proto"))
}

// packClients makes two versions of an npm package with code that protoc-gen-es
// generated: in the first, the shop's responses lack fields.
func packClients(t *testing.T, dir string) {
	t.Helper()
	need.Program(t, "protoc", "protobuf-compiler")
	plugin, err := filepath.Abs("../../schema/extract/testdata/node/node_modules/protoc-gen-es-2/bin/protoc-gen-es")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(plugin); err != nil {
		t.Skip("protoc-gen-es is not installed: make node-deps")
	}
	definitions := readFile(t, "testdata/shop/shop.proto")
	for version, text := range map[string]string{
		"1.0": strings.NewReplacer("  Money total = 2;\n", "", "  repeated string warnings = 3;\n", "").Replace(definitions),
		"1.1": definitions,
	} {
		work := t.TempDir()
		writeFile(t, filepath.Join(work, "shop.proto"), text)
		writeFile(t, filepath.Join(work, "package", "package.json"), `{"name": "shop-client", "version": "`+version+`.0"}`)
		for _, argv := range [][]string{
			{"protoc", "--plugin=protoc-gen-es=" + plugin, "--es_out=package", "shop.proto"},
			{"tar", "-czf", filepath.Join(dir, "client-"+version+".tgz"), "package"},
		} {
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Dir = work
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", argv, err, out)
			}
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// freeAddress is a loopback address on which nothing listens: the port that
// the document names may be taken where the test runs. It is none of those that
// systems give to whoever asks for any, as another test soon would have it.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err == nil {
			defer ln.Close()
			return ln.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

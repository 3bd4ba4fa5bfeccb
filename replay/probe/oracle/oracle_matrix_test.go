package oracle_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"unwire/captures/need"
	"unwire/replay/internal/nodetest"
	"unwire/replay/outbound"
	"unwire/replay/probe"
	"unwire/replay/probe/oracle"
	"unwire/replay/probe/testdata/gen/catalog"
)

const find = "/gen.catalog.Catalog/Find"

// A matrixServer is a kind of server of gen.catalog.Catalog.
type matrixServer struct {
	name  string
	start func(t *testing.T, o serverOptions) *catalogServer
	// runtime is what probe recognises.
	runtime probe.Runtime
	// prefix is what the server's own paths begin with.
	prefix string
	// interceptors means that the server can be started with all serverOptions.
	interceptors bool
	// said is in what is reported of a server that reveals nothing.
	said string
}

// serverOptions are how a server is started.
type serverOptions struct {
	// Auth refuses everybody, and Invalid each message, after it was parsed. Strict refuses unknown
	// names in JSON. Prefix precedes all paths.
	Auth    bool   `json:"auth"`
	Invalid bool   `json:"invalid"`
	Strict  bool   `json:"strict"`
	Prefix  string `json:"prefix,omitempty"`
	// Cert and Key are PEM; "" for cleartext.
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
}

// startNodeCatalog serves the service with connect-es.
func startNodeCatalog(version esVersion) func(*testing.T, serverOptions) *catalogServer {
	return func(t *testing.T, o serverOptions) *catalogServer {
		t.Helper()
		set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(catalog.File_catalog_proto)}}
		raw, err := proto.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		port := nodetest.Serve(t, fmt.Sprintf("../testdata/node%s/server.mjs", version), raw, o.json(t))
		return o.catalog(t, port, o.origin(port)+"/executed")
	}
}

// startGRPCJS serves the service with @grpc/grpc-js.
func startGRPCJS(t *testing.T, o serverOptions) *catalogServer {
	t.Helper()
	source, err := os.ReadFile("../testdata/gen/catalog.proto")
	if err != nil {
		t.Fatal(err)
	}
	return o.withCounter(t, nodetest.Serve(t, "../testdata/nodegrpc/server.mjs", source, o.json(t)))
}

// startPython serves the service with grpcio and the code that protoc generates for Python.
func startPython(t *testing.T, o serverOptions) *catalogServer {
	t.Helper()
	generated := t.TempDir()
	if out, err := exec.Command(need.Protoc(t), "-I../testdata/gen", "--python_out="+generated, "../testdata/gen/catalog.proto").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(need.Python(t, "grpc", "google.protobuf"), "../testdata/python/server.py", generated)
	if o.Cert != "" {
		pem := t.TempDir()
		for name, text := range map[string]string{"cert.pem": o.Cert, "key.pem": o.Key} {
			if err := os.WriteFile(filepath.Join(pem, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd.Args = append(cmd.Args, pem)
	}
	// What grpcio writes about messages that it cannot parse is not an error of the test.
	cmd.Stderr = nil
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return o.withCounter(t, strings.TrimSpace(line))
}

// name are the options that are not empty.
func (o serverOptions) name() string {
	tls := o.Cert != ""
	o.Cert, o.Key = "", ""
	return fmt.Sprintf("%+v, TLS %t", o, tls)
}

func (o serverOptions) json(t *testing.T) []byte {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (o serverOptions) origin(port string) string {
	if o.Cert != "" {
		return "https://127.0.0.1:" + port
	}
	return "http://127.0.0.1:" + port
}

// withCounter is a server that printed its port and that of its counter.
func (o serverOptions) withCounter(t *testing.T, ports string) *catalogServer {
	t.Helper()
	port, counter, ok := strings.Cut(ports, " ")
	if !ok {
		t.Fatalf("ports: %q", ports)
	}
	return o.catalog(t, port, "http://127.0.0.1:"+counter)
}

// catalog is a server in another process, whose counter is at a URL.
func (o serverOptions) catalog(t *testing.T, port, counter string) *catalogServer {
	t.Helper()
	s := &catalogServer{url: parseURL(t, o.origin(port)), roots: o.roots(t)}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots, MinVersion: tls.VersionTLS12}}}
	s.ran = func() int {
		resp, err := client.Get(counter)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // it was read
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if _, err := fmt.Sscan(string(b), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	return s
}

func matrixServers() []matrixServer {
	return []matrixServer{
		{name: "connect-go", start: startConnectCatalog, runtime: probe.ConnectGo, interceptors: true},
		{name: "grpc-go", start: startGRPCCatalog, runtime: probe.GRPCGo, interceptors: true},
		{name: "connect-es 1", start: startNodeCatalog(es1), runtime: probe.ES1, interceptors: true},
		{name: "connect-es 2", start: startNodeCatalog(es2), runtime: probe.ES2, interceptors: true},
		{name: "connect-es 2.1", start: startNodeCatalog(es21), runtime: probe.ES2, interceptors: true},
		{name: "Twirp", start: startTwirpCatalog, runtime: probe.Unknown, prefix: "/twirp", interceptors: true, said: "Twirp"},
		{name: "grpc-gateway", start: startGatewayCatalog, runtime: probe.Unknown, interceptors: true, said: "JSON"},
		{name: "grpcio", start: startPython, runtime: probe.Unknown, said: "do not contain the error messages of its parser"},
		{name: "grpc-js", start: startGRPCJS, runtime: probe.Unknown, said: "do not contain the error messages of its parser"},
	}
}

// Servers with generated code, behind interceptors, path prefixes and TLS: what is reported is true,
// all that the runtime can show is found, and no handler runs.
func TestServerMatrix(t *testing.T) {
	cert, key := testCertificate(t)
	for _, server := range matrixServers() {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			variants := map[string]serverOptions{"plain": {}, "TLS": {Cert: cert, Key: key}}
			if server.interceptors {
				variants["auth"] = serverOptions{Auth: true}
				variants["invalid"] = serverOptions{Invalid: true}
				variants["strict"] = serverOptions{Strict: true}
				if server.runtime != probe.GRPCGo { // gRPC has no paths before the service
					variants["prefix"] = serverOptions{Prefix: "/api/v1"}
					variants["all"] = serverOptions{Auth: true, Invalid: true, Strict: true, Prefix: "/api/v1", Cert: cert, Key: key}
				}
			}
			var plain *probe.Result
			for _, name := range slices.Sorted(maps.Keys(variants)) {
				o := variants[name]
				s := server.start(t, o)
				res := probeCatalog(t, server, s, o)
				switch {
				case plain == nil:
					plain = res
				case !slices.Equal(told(res), told(plain)):
					t.Errorf("%s: %q, %q otherwise", name, told(res), told(plain))
				}
				verifyCatalog(t, server, s, o)
				if n := s.ran(); n != 0 {
					t.Errorf("%s: handlers ran %d times", name, n)
				}
			}
			t.Logf("%d fields in %d requests", len(told(plain)), plain.Requests)
		})
	}
}

// options are those of a probe of the catalog.
func (s *catalogServer) options(server matrixServer, o serverOptions) probe.Options {
	return probe.Options{
		To: s.url, Method: o.Prefix + server.prefix + find, Type: true, Refine: true, Depth: 1, Numbers: []probe.Range{{First: 1, Last: 60}},
		Reach: outbound.Policy{Roots: s.roots}, Known: []string{"query"},
	}
}

// probeCatalog probes a server, and compares the result with the definitions.
func probeCatalog(t *testing.T, server matrixServer, s *catalogServer, o serverOptions) *probe.Result {
	t.Helper()
	md := catalog.File_catalog_proto.Messages().ByName("FindRequest")
	options := s.options(server, o)
	options.Names = []string{"nobody", "query", "pageSize", "weights", "order", "filter", "none_of_it", "negated"}
	res, err := oracle.Run(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	if res.Runtime != server.runtime || res.Executed != 0 {
		t.Errorf("%s: %s, %d executed: %q %q", o.name(), res.Runtime, res.Executed, res.Stopped, res.Notes)
	}
	compareAll(t, res, md)
	checkNames(t, res, md)
	checkNested(t, res, md)

	found, want, named := 0, 0, 0
	for _, f := range res.Fields {
		if f.Path == "" && f.Number != 0 {
			found++
		}
		if f.Name != "" {
			named++
		}
	}
	for i := range md.Fields().Len() {
		switch fd := md.Fields().Get(i); {
		case server.runtime == probe.Unknown:
		case server.runtime == probe.ES1, server.runtime == probe.ES2, seenByGo(fd):
			want++
		}
	}
	said := res.Stopped + " " + strings.Join(res.Notes, " ")
	if found != want || !strings.Contains(said, server.said) || server.said == "" && res.Stopped != "" {
		t.Errorf("%s: %d of %d fields: %s", o.name(), found, want, said)
	}
	if server.runtime != probe.Unknown && server.runtime != probe.GRPCGo && named < 5 {
		t.Errorf("%s: %d names: %s", o.name(), named, said)
	}
	return res
}

// verifyCatalog verifies the true definition, of which nothing may be contradicted.
func verifyCatalog(t *testing.T, server matrixServer, s *catalogServer, o serverOptions) {
	t.Helper()
	md := catalog.File_catalog_proto.Messages().ByName("FindRequest")
	v, err := oracle.VerifyMethod(t.Context(), probe.VerifyOptions{Options: s.options(server, o), Request: md, AskNames: true})
	if err != nil {
		t.Fatal(err)
	}
	if v.Contradicted > 0 || v.Executed > 0 || server.runtime != probe.Unknown && v.Confirmed < 9 || server.runtime == probe.Unknown && v.Confirmed > 0 {
		t.Errorf("%s: %d confirmed, %d contradicted, %d executed: %s %q", o.name(), v.Confirmed, v.Contradicted, v.Executed, v.Stopped, v.Notes)
	}
}

// connect-go and grpc-go reveal the same fields.
func TestGoServersRevealTheSame(t *testing.T) {
	var all []string
	for _, server := range matrixServers()[:2] {
		s := server.start(t, serverOptions{})
		res := probeCatalog(t, server, s, serverOptions{})
		if all == nil {
			all = told(res)
		}
		if got := told(res); len(got) == 0 || !slices.Equal(got, all) {
			t.Errorf("%q, %q on connect-go", got, all)
		}
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"go/build"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoregistry"

	"unwire/captures/need"
	"unwire/schema"
)

// opinionServer is a server of talk.v1.Talk as an URL and the CA that signed its certificate.
type opinionServer struct {
	name, url, ca string
	grpc          bool // gRPC alone
}

// opinionServers serve with connect-go and grpc-go, in clear and with TLS.
func opinionServers(t *testing.T) (list []opinionServer) {
	t.Helper()
	s, err := schema.FromTexts(talkTexts)
	if err != nil {
		t.Fatal(err)
	}
	files := &protoregistry.Files{}
	for _, f := range s.Files {
		if err := files.RegisterFile(f); err != nil {
			t.Fatal(err)
		}
	}
	talk := &talkService{files: files}
	handlers := map[string]http.Handler{"connect-go": talk.connectHandler(true), "grpc-go": talk.grpcServer()}
	for _, name := range []string{"connect-go", "grpc-go"} {
		for _, secure := range []bool{false, true} {
			if secure != (name == "grpc-go") && os.Getenv("UNWIRE_LONG") == "" {
				continue
			}
			server := httptest.NewUnstartedServer(handlers[name])
			o := opinionServer{name: name + map[bool]string{false: " in clear", true: " with TLS"}[secure], grpc: name == "grpc-go"}
			if secure {
				server.EnableHTTP2 = true
				server.StartTLS()
				o.ca = filepath.Join(t.TempDir(), "ca.pem")
				cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
				if err := os.WriteFile(o.ca, cert, 0o600); err != nil {
					t.Fatal(err)
				}
			} else {
				server.Config.Protocols = new(http.Protocols)
				server.Config.Protocols.SetHTTP1(true)
				server.Config.Protocols.SetUnencryptedHTTP2(true)
				server.Start()
			}
			t.Cleanup(server.Close)
			o.url = server.URL
			list = append(list, o)
		}
	}
	return list
}

// opinion runs a program, and returns the JSON documents that it prints.
func opinion(t *testing.T, name string, args ...string) (documents []any) {
	t.Helper()
	out := output(t, name, args...)
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var d any
		err := dec.Decode(&d)
		if err == io.EOF {
			return documents
		}
		if err != nil {
			t.Fatalf("%s %q: %v in %s", filepath.Base(name), args, err, out)
		}
		documents = append(documents, d)
	}
}

// output runs a program, and returns what it prints.
func output(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var errText bytes.Buffer
	cmd.Stderr = &errText
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", filepath.Base(name), args, err, out, errText.String())
	}
	return out
}

// programOf finds a program that `go install` has installed, or skips.
func programOf(t *testing.T, name, pkg string, args ...string) string {
	t.Helper()
	installed := filepath.Join(build.Default.GOPATH, "bin", name)
	if _, err := os.Stat(installed); err == nil {
		return installed
	}
	return need.Program(t, name, pkg, args...)
}

// grpcurl and buf curl find the same definitions by reflection, and get the same answers
// as unwire call, from the same servers.
func TestSecondOpinions(t *testing.T) {
	grpcurl := programOf(t, "grpcurl", "grpcurl (go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3)", "-version")
	need.Modules(t, "testdata/opinion")
	buf, err := filepath.Abs("testdata/opinion/node_modules/@bufbuild/buf-linux-x64/bin/buf")
	if err != nil {
		t.Fatal(err)
	}
	unwire := unwireCommand(t)
	calls := []struct{ method, data string }{
		{"Echo", `{"text":"hi","number":"7","words":["a","b"],"data":"AAE=","mood":"MOOD_GLAD","more":{"k":{"text":"in"}}}`},
		{"Echo", `{}`},
		{"Count", `{"number":3}`},
		{"Sum", `{"number":1} {"number":2} {"number":4}`},
		{"Chat", `{"text":"one","number":1} {"text":"two","number":2}`},
	}
	compared := 0
	for _, s := range opinionServers(t) {
		t.Run(s.name, func(t *testing.T) {
			host := strings.TrimPrefix(strings.TrimPrefix(s.url, "http://"), "https://")
			trust, grpcTrust, bufTrust := []string{}, []string{"-plaintext"}, []string{"--http2-prior-knowledge"}
			if s.ca != "" {
				trust, grpcTrust, bufTrust = []string{"--upstream-ca", s.ca}, []string{"-cacert", s.ca}, []string{"--cacert", s.ca}
			}

			// The same definitions.
			set := filepath.Join(t.TempDir(), "talk.binpb")
			text := output(t, grpcurl, append(append([]string{}, grpcTrust...), "-protoset-out", set, host, "describe", "talk.v1.Talk")...)
			if !strings.Contains(string(text), "rpc Chat ( stream .talk.v1.Note ) returns ( stream .talk.v1.Note );") {
				t.Errorf("grpcurl: %s", text)
			}
			reflected := filepath.Join(t.TempDir(), "reflected")
			output(t, unwire, append([]string{"schema", "extract", "-o", reflected, "reflect:" + s.url}, trust...)...)
			output(t, unwire, "schema", "diff", reflected, set) // it exits with 1 where they differ
			for _, c := range calls {
				method := "talk.v1.Talk/" + c.method
				protocols := []string{"connect", "grpc", "grpc-web"}
				if s.grpc {
					protocols = protocols[1:2]
				}
				want := opinion(t, grpcurl, append(append([]string{}, grpcTrust...), "-d", c.data, host, method)...)
				for _, protocol := range protocols {
					ours := opinion(t, unwire, append([]string{"call", method, "--data", c.data, "--to", s.url, "--protocol", protocol}, trust...)...)
					theirs := opinion(t, buf, append([]string{"curl", "--protocol", strings.ReplaceAll(protocol, "-", ""), "-d", c.data, s.url + "/" + method}, bufTrust...)...)
					if !reflect.DeepEqual(ours, want) || !reflect.DeepEqual(ours, theirs) {
						t.Errorf("%s over %s: unwire %v, grpcurl %v, buf %v", c.method, protocol, ours, want, theirs)
					}
					compared++
				}
			}
		})
	}
	t.Logf("%d calls agree", compared)
}

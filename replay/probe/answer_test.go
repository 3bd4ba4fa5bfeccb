package probe

import (
	"net/http"
	"testing"
)

// What a server answers is read without a panic.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"code":"internal","message":"parse binary: illegal tag: field no 33768 wire type 6"}`), 500)
	f.Add([]byte("\x02\x00\x00\x00\x2a{\"error\":{\"code\":\"internal\",\"message\":\"x\"}}"), 200)
	f.Add([]byte("\x80\x00\x00\x00\x20grpc-status: 13\r\ngrpc-message: %20"), 200)
	f.Fuzz(func(t *testing.T, data []byte, status int) {
		for _, p := range []Protocol{connectUnary, connectStream, grpc, grpcWeb} {
			a := &Answer{Status: status}
			a.read(p, &http.Response{StatusCode: status, Header: http.Header{}}, data)
			a.finish(p)
			if most := a.sizeLimit(5000); most < 0 || most >= 5000 {
				t.Errorf("at most %d bytes of 5000", most)
			}
			runtimeOf(a)
		}
	})
}

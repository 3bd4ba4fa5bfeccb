// Static is a program that knows nothing of proxies: built without cgo, it
// makes its system calls by itself.
//
// Each argument is a step: a URL to get, "lookup SERVER NAME", "quic ADDR", "h3 URL", or
// "refused ADDR".
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// patience is how long a client of QUIC waits for a server. The tests check that none waits for as long.
const patience = time.Minute

func main() {
	client := &http.Client{Transport: &http.Transport{Proxy: nil, ForceAttemptHTTP2: true}, Timeout: patience}
	for _, step := range os.Args[1:] {
		words := strings.Fields(step)
		switch words[0] {
		case "lookup":
			r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, words[1])
			}}
			if words[1] == "system" {
				r = net.DefaultResolver
			}
			addrs, err := r.LookupHost(context.Background(), words[2])
			check(err)
			fmt.Println(words[2], addrs[len(addrs)-1])
		case "udp-refused":
			conn, err := net.Dial("udp", words[1])
			check(err)
			_, err = conn.Write([]byte("hello"))
			check(err)
			check(conn.SetReadDeadline(time.Now().Add(10 * time.Second)))
			_, err = conn.Read(make([]byte, 10))
			fmt.Println(words[1], errors.Is(err, syscall.ECONNREFUSED))
		case "quic":
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			conn, err := quic.DialAddr(ctx, words[1], &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"test"}}, &quic.Config{HandshakeIdleTimeout: patience})
			var refused *quic.VersionNegotiationError
			if err == nil {
				_ = conn.CloseWithError(0, "")
			}
			if err != nil && !errors.As(err, &refused) {
				check(err)
			}
			cancel()
			fmt.Println("quic", err == nil)
		case "h3":
			fmt.Println(overHTTP3(client, words[1]))
		case "inside":
			ln, err := net.Listen("tcp", words[1])
			check(err)
			go func() {
				check(http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "from inside") })))
			}()
		default:
			res, err := client.Get(words[0])
			check(err)
			body, err := io.ReadAll(res.Body)
			check(err)
			fmt.Println(res.Proto, string(body))
		}
	}
}

// overHTTP3 gets a URL as clients do that were told of HTTP/3 by Alt-Svc: they go back to TCP
// when no connection of QUIC can be made.
func overHTTP3(client *http.Client, url string) string {
	transport := &http3.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, QUICConfig: &quic.Config{HandshakeIdleTimeout: patience}}
	defer transport.Close()
	res, err := (&http.Client{Transport: transport, Timeout: patience}).Get(url)
	if err != nil {
		res, err = client.Get(url)
		check(err)
	}
	body, err := io.ReadAll(res.Body)
	check(err)
	return res.Proto + " " + string(body)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

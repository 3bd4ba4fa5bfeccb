package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"

	"github.com/coder/websocket"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// talkServer is a program of scripts: a server of WebSockets, and one of delimited protobuf
// in TLS without HTTP, until stdin ends. It prints their addresses as spawn wants them, the
// second as the proxy, and has its certificate in server.pem.
func talkServer() {
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	sockets := httptest.NewTLSServer(http.HandlerFunc(serveTalk))
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: sockets.Certificate().Raw})
	check(os.WriteFile("server.pem", cert, 0o600))
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: sockets.TLS.Certificates})
	check(err)
	check(json.NewEncoder(os.Stdout).Encode(map[string]string{"url": sockets.URL, "proxy": ln.Addr().String(), "ca": "server.pem"}))
	for {
		conn, err := ln.Accept()
		check(err)
		go func() {
			defer conn.Close()
			r := bufio.NewReader(conn)
			for {
				m := new(wrapperspb.StringValue)
				if protodelim.UnmarshalFrom(r, m) != nil {
					return
				}
				m.Value = "you said " + m.Value
				_, _ = protodelim.MarshalTo(conn, m)
			}
		}()
	}
}

// serveTalk answers the messages of a WebSocket.
func serveTalk(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover, CompressionThreshold: 1})
	if err != nil {
		return
	}
	defer c.CloseNow() //nolint:errcheck // it may be closed
	for {
		kind, data, err := c.Read(r.Context())
		if err != nil {
			return
		}
		if kind == websocket.MessageText {
			data = []byte(`{"type":"joined","users":[{"name":"kim","age":31}]}`)
		} else {
			data = protowire.AppendString([]byte{8, 2, 18}, "a needle for "+string(data[2:]))
		}
		if c.Write(r.Context(), kind, data) != nil {
			return
		}
	}
}

// talkClient is a program of scripts that talks to talkServer through a proxy:
//
//	talkclient PROXY CA.pem https://HOST:PORT|HOST:PORT WORDS
func talkClient() {
	if err := talk(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func talk(proxy, ca, server, words string) error {
	via, err := url.Parse(proxy)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	trust := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
	if host, _, err := net.SplitHostPort(server); err == nil && host == "127.0.0.1" {
		return talkRaw(via.Host, server, trust, words)
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(via), TLSClientConfig: trust}}
	ctx := context.Background()
	c, res, err := websocket.Dial(ctx, server+"/rooms/42/ws", &websocket.DialOptions{
		HTTPClient: client, CompressionMode: websocket.CompressionContextTakeover, CompressionThreshold: 1,
	})
	if err != nil {
		return fmt.Errorf("%w: %v", err, res)
	}
	defer c.CloseNow() //nolint:errcheck // it may be closed
	for _, m := range []struct {
		kind websocket.MessageType
		data []byte
	}{
		{websocket.MessageText, []byte(`{"type":"join","room":"` + words + `"}`)},
		{websocket.MessageBinary, protowire.AppendString([]byte{18}, words)},
	} {
		if err := c.Write(ctx, m.kind, m.data); err != nil {
			return err
		}
		if _, _, err := c.Read(ctx); err != nil {
			return err
		}
	}
	return c.Close(websocket.StatusNormalClosure, "bye")
}

// talkRaw talks delimited protobuf in TLS.
func talkRaw(proxy, server string, trust *tls.Config, words string) error {
	conn, err := net.Dial("tcp", proxy)
	if err != nil {
		return err
	}
	defer conn.Close()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", server)
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil || res.StatusCode != http.StatusOK {
		return fmt.Errorf("the proxy said %v: %w", res, err)
	}
	c := tls.Client(conn, trust)
	r := bufio.NewReader(c)
	for i := range 3 {
		if _, err := protodelim.MarshalTo(c, wrapperspb.String(fmt.Sprint(words, " ", i))); err != nil {
			return err
		}
		if err := protodelim.UnmarshalFrom(r, new(wrapperspb.StringValue)); err != nil {
			return err
		}
	}
	if err := c.CloseWrite(); err != nil {
		return err
	}
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the server has not ended: %w", err)
	}
	return nil
}

// Package chain finds out whether reverse proxies of this user lead back to each other, so
// that a request would go round without end. Proxies for which clients are configured tell
// each other in a header; a reverse proxy has to look like its client to the server, and
// adds nothing.
//
//	link, err := chain.Announce(listener.Addr(), "localhost:8000")
//	defer link.Close()
//	...
//	if chain.IsCycle(ctx, address) { // of a server that is about to be connected to
//
// Each listener of a reverse proxy has a Unix socket in a folder of the user's own, named
// after its address, which answers with the address of its server. A chain is followed from
// there to there; one that comes to a listener for the second time never ends. A socket
// whose process was killed refuses connections, so nothing has to be cleaned up.
//
// Limits: proxies of several users, in containers, or on several machines do not find each
// other. A chain has at most 64 links.
package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// maxLinks bounds the links of a chain that are followed.
	maxLinks = 64

	// askTimeout bounds the wait for one answer, which comes at once.
	askTimeout = 250 * time.Millisecond

	// maxAnswer is the most bytes of an answer.
	maxAnswer = 1 << 10

	// maxPath is the longest path that a Unix socket has on every system.
	maxPath = 103
)

// A Link is an announced listener.
type Link struct {
	listener net.Listener
	answer   []byte
}

// answer is the JSON by which a link identifies itself.
type answer struct {
	// Server is the host:port that requests to the listener go to.
	Server string `json:"server"`
}

// Announce says that what comes to a TCP listener goes to a server, given as host:port,
// until the link is closed.
func Announce(listener net.Addr, server string) (*Link, error) {
	addr, ok := listener.(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("chain: %s is not TCP", listener.Network())
	}
	dir := folder()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("chain: %w", err)
	}
	if !isPrivate(dir) {
		return nil, fmt.Errorf("chain: %s is not a folder of this user alone", dir)
	}
	path := socketOf(dir, addr.AddrPort())
	if len(path) > maxPath {
		return nil, fmt.Errorf("chain: the path %s is too long for a socket", path)
	}
	// The listener has its address to itself, so an older socket is left over.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("chain: %w", err)
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("chain: %w", err)
	}
	text, err := json.Marshal(answer{server})
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	l := &Link{ln, text}
	go l.serve()
	return l, nil
}

// Close takes the announcement back.
func (l *Link) Close() error { return l.listener.Close() }

func (l *Link) serve() {
	for {
		conn, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(askTimeout) // out of files, most likely
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(askTimeout))
		_, _ = conn.Write(l.answer)
		_ = conn.Close()
	}
}

// IsCycle reports whether a connection to an address would go round without end.
func IsCycle(ctx context.Context, to *net.TCPAddr) bool {
	dir := folder()
	if !isPrivate(dir) {
		return false
	}
	seen := make(map[string]bool)
	at := []netip.AddrPort{to.AddrPort()}
	for range maxLinks {
		path, server := next(ctx, dir, at)
		if server == "" {
			return false
		}
		if seen[path] {
			return true
		}
		seen[path] = true
		at = addressesOf(ctx, server)
	}
	return false
}

// next asks the listener at one of some addresses for its server. It returns the listener's
// socket; an empty server means that there is none.
func next(ctx context.Context, dir string, addresses []netip.AddrPort) (path, server string) {
	for _, a := range addresses {
		for _, ip := range []netip.Addr{a.Addr().Unmap(), netip.IPv6Unspecified(), netip.IPv4Unspecified()} {
			path = socketOf(dir, netip.AddrPortFrom(ip, a.Port()))
			server = ask(ctx, path)
			if server != "" && (!ip.IsUnspecified() || isLocal(a.Addr())) {
				return path, server
			}
		}
	}
	return "", ""
}

// ask returns the server that a listener's socket names; "" if nobody listens there.
func ask(ctx context.Context, path string) string {
	if _, err := os.Lstat(path); err != nil {
		return "" // mostly: the address is not a reverse proxy's
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(askTimeout))
	var a answer
	if err := json.NewDecoder(io.LimitReader(conn, maxAnswer)).Decode(&a); err != nil {
		return ""
	}
	return a.Server
}

// addressesOf resolves host:port.
func addressesOf(ctx context.Context, server string) (out []netip.AddrPort) {
	host, portText, err := net.SplitHostPort(server)
	if err != nil {
		return nil
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	for _, ip := range ips {
		out = append(out, netip.AddrPortFrom(ip, uint16(port)))
	}
	return out
}

// isLocal reports whether an address is one of this machine's.
func isLocal(ip netip.Addr) bool {
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip.AsSlice()) {
			return true
		}
	}
	return false
}

// folder is where the sockets of the user are.
func folder() string {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		var err error
		if dir, err = os.UserCacheDir(); err != nil {
			dir = os.TempDir()
		}
	}
	return filepath.Join(dir, "unwire-chain-"+strconv.Itoa(os.Getuid()))
}

// socketOf is the path of a listener's socket.
func socketOf(dir string, a netip.AddrPort) string {
	ip := a.Addr().Unmap().WithZone("").String()
	return filepath.Join(dir, fmt.Sprintf("%s-%d", strings.ReplaceAll(ip, ":", "_"), a.Port()))
}

package control

import (
	"net"
	"os"
	"path/filepath"
	"strings"
)

// A listener is the socket of a server.
type listener struct {
	net.Listener
	network, address string
	folder           string // of a Unix socket, only for that; "": none
}

// Names of a Unix socket: unwire-*/control.sock.
const (
	socketFolder = "unwire-"
	socketName   = "control.sock"
)

// maxSocketPath is how long the path of a Unix socket may be on every system.
const maxSocketPath = 103

// listen opens a socket that only this user can connect to: a Unix socket in a folder of
// its own, or if there are none here, a port of 127.0.0.1, which the token protects.
func listen() (*listener, error) {
	for _, parent := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"} {
		if l := listenUnix(parent); l != nil {
			return l, nil
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &listener{Listener: l, network: "tcp", address: l.Addr().String()}, nil
}

// listenUnix opens a Unix socket below a folder; nil if that is not possible.
func listenUnix(parent string) *listener {
	if !unixSockets || !filepath.IsAbs(parent) {
		return nil
	}
	folder, err := os.MkdirTemp(parent, socketFolder) // 0700
	if err != nil {
		return nil
	}
	path := filepath.Join(folder, socketName)
	if len(path) <= maxSocketPath {
		if l, err := net.Listen("unix", path); err == nil {
			return &listener{Listener: l, network: "unix", address: path, folder: folder}
		}
	}
	_ = os.Remove(folder)
	return nil
}

// close closes the socket and removes its folder.
func (l *listener) close() error {
	err := l.Close() // removes a Unix socket
	if l.folder != "" {
		_ = os.Remove(l.folder) // what is left of it is empty, and harmless
	}
	return err
}

// removeStale removes the control file of a killed recorder and its socket. Only what has
// the name of a socket that this program makes, and is one, is removed.
func removeStale(name string) {
	if file, err := readFile(name); err == nil && file.Network == "unix" {
		folder, base := filepath.Split(file.Address)
		folder = filepath.Clean(folder)
		info, err := os.Lstat(file.Address)
		if err == nil && base == socketName && strings.HasPrefix(filepath.Base(folder), socketFolder) && info.Mode()&os.ModeSocket != 0 {
			_ = os.Remove(file.Address)
			_ = os.Remove(folder)
		}
	}
	_ = os.Remove(name)
}

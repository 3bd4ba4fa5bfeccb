package control

import (
	"net"
	"os"
	"path/filepath"
	"strings"
)

// A listener is the recorder's control socket, with its address for the control file.
type listener struct {
	// The embedded Listener is the open socket.
	net.Listener
	// network is the kind of the socket as for net.Dial, "unix" or "tcp".
	network string
	// address is the address of the socket as for net.Dial: a path or host:port.
	address string
	// folder is the path of the folder that was created for a Unix socket; "" for TCP.
	folder string
}

// Names in the path of a Unix socket, unwire-*/control.sock below a folder for temporary files.
const (
	socketFolder = "unwire-"
	socketName   = "control.sock"
)

// maxSocketPath is the longest path of a Unix socket that all systems support, in bytes.
const maxSocketPath = 103

// listen opens a socket to which only this user can connect: a Unix socket in a private folder or, if that is
// not possible, a TCP port of 127.0.0.1, which is protected by the token.
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

// listenUnix creates a Unix socket in a new private folder below parent, or returns nil if that is not
// possible.
func listenUnix(parent string) *listener {
	if !unixSockets || !filepath.IsAbs(parent) {
		return nil
	}
	// MkdirTemp creates the folder with mode 0700.
	folder, err := os.MkdirTemp(parent, socketFolder)
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

// close closes the socket, and removes its folder.
func (l *listener) close() error {
	// This also removes a Unix socket's file.
	err := l.Close()
	if l.folder != "" {
		// If it cannot be removed, an empty folder remains, which is harmless.
		_ = os.Remove(l.folder)
	}
	return err
}

// removeStale removes the control file name of a recorder that was killed, and its socket. The control file is
// not trusted: only a socket whose name this package would choose is removed.
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

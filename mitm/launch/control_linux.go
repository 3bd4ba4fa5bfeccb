package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

const (

	// maxMessage limits a message in bytes, and maxSockets the number of open files that are sent with it.
	maxMessage = 8 << 10
	maxSockets = 5
)

// A message is sent between RunTransparent or RunPassive, outside of the network namespace, and NamespaceInit
// inside it. Sockets are sent with it as open files.
type message struct {
	// Bind requests a UDP socket that is bound to this address (host:port).
	Bind string `json:"bind,omitempty"`

	// Sockets are the kinds of the files that are sent with the message: tcp, udp, packets or questions.
	Sockets []string `json:"sockets,omitempty"`

	// Status is the exit status to return if the command was not started; 0 otherwise.
	Status int `json:"status,omitempty"`
	// Error is the reason why the command was not started; "" if it was.
	Error string `json:"error,omitempty"`

	// Missing describes a system feature that is required and missing; "" if none is.
	Missing string `json:"missing,omitempty"`
}

// A control is one end of the Unix socket between unwire and its child process in the network namespace.
type control struct {
	// conn is this end of the socket.
	conn *net.UnixConn
}

// controlPair returns both ends of a new control socket. The second one is to be passed to the child process.
func controlPair() (*control, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("a socket pair cannot be created: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "control")
	c, err := newControl(fds[0])
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return c, theirs, nil
}

// newControl returns the end of a control socket that is the file descriptor fd.
func newControl(fd int) (*control, error) {
	f := os.NewFile(uintptr(fd), "control")
	if f == nil {
		return nil, errors.New("the control socket is missing")
	}
	// net.FileConn has duplicated the file.
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("the control socket cannot be used: %w", err)
	}
	u, ok := conn.(*net.UnixConn)
	if !ok {
		_ = conn.Close()
		return nil, errors.New("the control file descriptor is not a socket")
	}
	return &control{u}, nil
}

// send sends a message together with open files.
func (c *control) send(m message, files ...*os.File) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	_, _, err = c.conn.WriteMsgUnix(data, rights, nil)
	return err
}

// receive receives a message with open files, which the caller must close.
func (c *control) receive() (m message, files []*os.File, err error) {
	data := make([]byte, maxMessage)
	oob := make([]byte, unix.CmsgSpace(4*maxSockets))
	n, oobn, _, _, err := c.conn.ReadMsgUnix(data, oob)
	if err != nil {
		return m, nil, err
	}
	parts, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return m, nil, err
	}
	for i := range parts {
		fds, err := unix.ParseUnixRights(&parts[i])
		if err != nil {
			continue // not files
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "socket"))
		}
	}
	if err := json.Unmarshal(data[:n], &m); err != nil {
		closeAll(files)
		return m, nil, fmt.Errorf("the control message cannot be read: %w", err)
	}
	return m, files, nil
}

// closeAll closes all files.
func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"unwire/mitm/process"
)

// setUpTimeout limits the setup of the namespace.
const setUpTimeout = 30 * time.Second

// runTransparent implements RunTransparent on Linux.
func runTransparent(ctx context.Context, o Options, n Namespace) (exit int, err error) {
	return runInNamespace(ctx, o, namespaceRun{
		init: n.Init, environment: directEnvironment, server: &namespaceServer{serve: n.Serve},
	})
}

// A namespaceRun describes how a command is run in a network namespace.
type namespaceRun struct {
	// init is Namespace.Init or Passive.Init.
	init []string

	// environment returns the environment of the command. It may create files in dir.
	environment func(o Options, dir string) ([]string, error)
	// server serves the namespace's traffic from outside.
	server *namespaceServer
}

// runInNamespace runs a command in a new network namespace, while n.server serves the namespace's traffic, and
// returns the exit status.
func runInNamespace(ctx context.Context, o Options, n namespaceRun) (exit int, err error) {
	if len(o.Argv) == 0 || len(n.init) == 0 {
		return statusNotFound, errors.New("launch: no command is given")
	}
	caught, stop, err := catchSignals(o.Begin)
	if err != nil {
		return statusNotExecutable, fmt.Errorf("launch: %w", err)
	}
	defer stop()
	path, err := exec.LookPath(o.Argv[0])
	if err != nil {
		return startStatus(err), fmt.Errorf("launch: %w", err)
	}
	dir, err := os.MkdirTemp("", "unwire-") // mode 0700
	if err != nil {
		return statusNotExecutable, fmt.Errorf("launch: %w", err)
	}
	defer os.RemoveAll(dir)
	env, err := n.namespaceEnvironment(o, dir)
	if err != nil {
		return statusNotExecutable, fmt.Errorf("launch: %w", err)
	}
	c, theirs, err := controlPair()
	if err != nil {
		return statusNotExecutable, fmt.Errorf("launch: %w", err)
	}
	defer c.conn.Close()
	defer theirs.Close()

	args := append(append(n.init[1:len(n.init):len(n.init)], path), o.Argv...)
	cmd := exec.CommandContext(ctx, n.init[0], args...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.Stdin, o.Stdout, o.Stderr
	// The file becomes controlFD.
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = namespaceAttr()

	s := n.server
	s.quic = o.QUIC
	s.control = c
	defer s.close()
	begun := false
	code, err := runCommand(cmd, caught, func() error {
		begun = true
		// Close it here, so that the end of the process is noticed.
		_ = theirs.Close()
		return s.start()
	})
	var failed *startError
	switch {
	case err == nil:
		return code, nil
	case errors.As(err, &failed):
		return failed.status, err
	case !begun && refusesNamespace(err):
		return statusNotExecutable, fmt.Errorf("launch: %w", &UnsupportedError{Missing: missingNamespace(), Err: err})
	}
	return code, err
}

// namespaceEnvironment returns the command's environment, with additional variables for the process that sets
// up the namespace.
func (n *namespaceRun) namespaceEnvironment(o Options, dir string) ([]string, error) {
	env, err := n.environment(o, dir)
	if err != nil {
		return nil, err
	}
	if hasRoute6() {
		env = append(env, wantsRoute6+"=1")
	}
	if n.server.packets != nil {
		env = append(env, wantsPackets+"=1")
	}
	return env, nil
}

// namespaceAttr returns attributes for a child process in a new network namespace. Without root privileges,
// this also requires a user namespace, in which user and group ids stay the same.
func namespaceAttr() *syscall.SysProcAttr {
	if os.Geteuid() == 0 && hasCapabilities(unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN) {
		return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	}
	uid, gid := os.Geteuid(), os.Getegid()
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_NET_BIND_SERVICE},
	}
}

// hasCapabilities reports whether this process has all of the given Linux capabilities.
func hasCapabilities(rights ...int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	for _, r := range rights {
		if data[r/32].Effective&(1<<(r%32)) == 0 {
			return false
		}
	}
	return true
}

// refusesNamespace reports whether err means that a process was not started because the system refused a
// namespace.
func refusesNamespace(err error) bool {
	return slices.ContainsFunc([]error{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EUSERS, unix.EINVAL, unix.ENOSYS},
		func(e error) bool { return errors.Is(err, e) })
}

// missingNamespace describes why the system refused a namespace.
func missingNamespace() string {
	for _, s := range []struct{ file, value, name string }{
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone"},
		{"/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces"},
		{"/proc/sys/user/max_net_namespaces", "0", "user.max_net_namespaces"},
	} {
		if v, err := os.ReadFile(s.file); err == nil && strings.TrimSpace(string(v)) == s.value {
			return "the system does not allow users to create namespaces (" + s.name + " is " + s.value + ")"
		}
	}
	return "the system does not allow unwire to create a user namespace and a network namespace (a container may forbid it)"
}

// hasRoute6 reports whether the host has a route for IPv6. It connects a UDP socket, which sends nothing.
func hasRoute6() bool {
	conn, err := net.Dial("udp6", "[2001:db8::1]:9")
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// A startError means that the command was not started. status is the exit status to return.
type startError struct {
	// status is the exit status to return.
	status int
	// err is the reason why the command was not started.
	err error
}

// Error returns the reason.
func (e *startError) Error() string { return e.err.Error() }

// Unwrap returns the reason.
func (e *startError) Unwrap() error { return e.err }

// A namespaceServer serves, outside of a network namespace, the sockets that receive all traffic of the
// namespace.
type namespaceServer struct {
	// control is the connection to the child process in the namespace.
	control *control

	// serve serves the TCP connections of a listener.
	serve func(net.Listener, *process.Sockets)
	// quic says which QUIC connections are refused and reported.
	quic QUIC
	// packets reads recorded packets; nil if packets are not recorded.
	packets *packetReader

	// sockets gives access to the sockets in the namespace; nil if the system does not support that.
	sockets *process.Sockets
	// listeners are the listeners that receive the namespace's TCP connections.
	listeners []net.Listener
	// datagramRelays forward the namespace's UDP datagrams.
	datagramRelays []*datagramRelay
}

// start waits until the namespace is set up and the command is running in it, and starts serving its sockets.
func (s *namespaceServer) start() error {
	if err := s.control.conn.SetReadDeadline(time.Now().Add(setUpTimeout)); err != nil {
		return err
	}
	m, files, err := s.control.receive()
	if err != nil {
		return &startError{statusNotExecutable, fmt.Errorf("the process in the network namespace does not answer: %w", err)}
	}
	defer closeAll(files)
	switch {
	case m.Missing != "":
		return &startError{statusNotExecutable, &UnsupportedError{Missing: m.Missing, Err: errors.New(m.Error)}}
	case m.Error != "":
		return &startError{m.Status, errors.New(strings.TrimPrefix(m.Error, "launch: "))}
	case len(m.Sockets) != len(files):
		return &startError{statusNotExecutable, fmt.Errorf("the process in the network namespace announced %d sockets, but %d arrived", len(m.Sockets), len(files))}
	}
	if err := s.control.conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if i := slices.Index(m.Sockets, questionSocket); i >= 0 {
		s.sockets = process.NewSockets(files[i])
		// It stays open.
		files[i] = nil
	}
	binder := &binder{control: s.control}
	for i, kind := range m.Sockets {
		switch kind {
		case questionSocket:
			continue
		case packetSocket:
			if err := s.packets.start(files[i]); err != nil {
				return &startError{statusNotExecutable, err}
			}
			continue
		case "tcp":
			ln, err := net.FileListener(files[i])
			if err != nil {
				return &startError{statusNotExecutable, err}
			}
			s.listeners = append(s.listeners, ln)
			go s.serve(ln, s.sockets)
			continue
		}
		r, err := newDatagramRelay(files[i], binder, s.quic)
		if err != nil {
			return &startError{statusNotExecutable, err}
		}
		s.datagramRelays = append(s.datagramRelays, r)
		go r.run()
	}
	return nil
}

// close closes all sockets.
func (s *namespaceServer) close() {
	for _, ln := range s.listeners {
		_ = ln.Close()
	}
	for _, r := range s.datagramRelays {
		r.close()
	}
	if s.sockets != nil {
		s.sockets.Close()
	}
}

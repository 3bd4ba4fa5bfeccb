package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"unwire/mitm/process"
)

const (
	// controlFD is the file descriptor of the control socket in the process that sets the namespace up.
	controlFD = 3

	// wantsRoute6 and wantsPackets are environment variables by which that process learns to set up IPv6 and a
	// packet socket.
	wantsRoute6  = "UNWIRE_NAMESPACE_IPV6"
	wantsPackets = "UNWIRE_NAMESPACE_PACKETS"
	// backlog is the requested length of the accept queue. The kernel reduces it to net.core.somaxconn.
	backlog = 4096

	// questionSocket is the kind of the socket (see message.Sockets) that process.OpenSockets opens.
	questionSocket = "questions"

	missingRights  = "a process in a user namespace has no rights over its network (kernel.apparmor_restrict_unprivileged_userns may forbid it)"
	missingRules   = "the kernel lacks nf_tables with tproxy and socket (modules nft_tproxy and nft_socket)"
	missingPackets = "packet sockets are not available (the kernel lacks CONFIG_PACKET, or a container forbids them)"
	missingSockets = "the kernel lacks features that a network namespace needs (rtnetlink, transparent sockets)"
)

// namespaceInit implements NamespaceInit, which runs inside the new network namespace. The process has all
// capabilities there; the command gets none.
func namespaceInit(args []string, begin func() (end func(), err error)) int {
	// This process is started again by unwire itself, so a missing control socket means a manual call.
	var st unix.Stat_t
	if err := unix.Fstat(controlFD, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK || len(args) < 2 {
		fmt.Fprintln(os.Stderr, "unwire: error: this internal command can be started only by 'unwire capture' with --transparent or --passive")
		return statusNotExecutable
	}
	c, err := newControl(controlFD)
	if err != nil {
		fmt.Fprintln(os.Stderr, "unwire: error:", err)
		return statusNotExecutable
	}
	caught, stop, err := catchSignals(begin)
	if err != nil {
		return c.sendFailure(statusNotExecutable, err, "")
	}
	defer stop()

	// The variables are for this process only, so the command must not inherit them.
	route6 := os.Getenv(wantsRoute6) != ""
	withPackets := os.Getenv(wantsPackets) != ""
	if err := errors.Join(os.Unsetenv(wantsRoute6), os.Unsetenv(wantsPackets)); err != nil {
		return c.sendFailure(statusNotExecutable, err, "")
	}
	kinds, files, err := setUpNetwork(route6)
	if err != nil {
		return c.sendFailure(statusNotExecutable, err, missingFeature(err))
	}
	if withPackets {
		packets, err := openPackets()
		if err != nil {
			return c.sendFailure(statusNotExecutable, err, missingPackets)
		}
		files, kinds = append(files, packets), append(kinds, packetSocket)
	}

	// Without this socket, only the names of the processes are missing in the capture.
	if questions, err := process.OpenSockets(); err == nil {
		files, kinds = append(files, questions), append(kinds, questionSocket)
	}
	// Capabilities and the parent death signal belong to a thread.
	runtime.LockOSThread()
	if err := dropInheritableCapabilities(); err != nil {
		return c.sendFailure(statusNotExecutable, err, missingRights)
	}
	cmd := exec.CommandContext(context.Background(), args[0])
	cmd.Args = args[1:]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := false
	code, err := runCommand(cmd, caught, func() error {
		started = true
		defer closeAll(files)
		if err := c.send(message{Sockets: kinds}, files...); err != nil {
			return err
		}
		go c.serveBinds()
		return nil
	})
	if err != nil && !started {
		return c.sendFailure(code, err, "")
	}
	return code
}

// sendFailure reports to unwire, outside of the namespace, that the command was not started, and returns the
// exit status.
func (c *control) sendFailure(status int, err error, missing string) int {
	// If this fails, the other process has ended.
	_ = c.send(message{Status: status, Error: err.Error(), Missing: missing})
	return status
}

// missingFeature returns the system feature whose absence explains err, an error of the setup; "" if the error
// is unexpected.
func missingFeature(err error) string {
	is := func(e error) bool { return errors.Is(err, e) }
	var rules *rulesError
	inRules := errors.As(err, &rules)
	switch {
	case slices.ContainsFunc([]error{unix.EPERM, unix.EACCES}, is):
		return missingRights
	case inRules && is(unix.ENOENT):
		return missingRules
	case !slices.ContainsFunc([]error{unix.EOPNOTSUPP, unix.EPROTONOSUPPORT, unix.EAFNOSUPPORT, unix.ENOPROTOOPT, unix.ENOSYS}, is):
		return ""
	case inRules:
		return missingRules
	}
	return missingSockets
}

// setUpNetwork configures the namespace so that it treats all addresses as local, and returns the sockets that
// receive all traffic, with their kinds (see message.Sockets). route6 includes IPv6.
func setUpNetwork(route6 bool) (kinds []string, files []*os.File, err error) {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, nil, fmt.Errorf("the loopback device cannot be set up: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return nil, nil, fmt.Errorf("the loopback device cannot be set up: %w", err)
	}
	for _, f := range []*family{ipv4(), ipv6()} {
		tcp, tcpPort, err := listenTransparent(unix.SOCK_STREAM, netip.AddrPortFrom(f.listen, 0))
		if f.listen.Is6() && (errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL)) {
			// The system has no IPv6.
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		files, kinds = append(files, tcp), append(kinds, "tcp")
		udp, udpPort, err := listenTransparent(unix.SOCK_DGRAM, netip.AddrPortFrom(f.listen, 0))
		if err != nil {
			return nil, nil, err
		}
		files, kinds = append(files, udp), append(kinds, "udp")
		f.tcp, f.udp = tcpPort, udpPort
		if err := f.redirectAll(); err != nil {
			return nil, nil, err
		}
		if f.own.Addr().Is6() && !route6 {
			// IPv6 is unreachable outside too, so leave it unreachable.
			continue
		}
		if err := f.routeAll(lo); err != nil {
			return nil, nil, err
		}
	}
	return kinds, files, nil
}

// routeAll makes the namespace treat all addresses of an IP version as local. lo is the loopback device.
func (f *family) routeAll(lo netlink.Link) error {
	own, all := ipNet(f.own), ipNet(netip.PrefixFrom(f.own.Addr(), 0).Masked())
	if err := netlink.AddrAdd(lo, &netlink.Addr{IPNet: own, Flags: unix.IFA_F_NODAD}); err != nil {
		return fmt.Errorf("the address %s cannot be added: %w", f.own, err)
	}
	err := netlink.RouteAdd(&netlink.Route{
		LinkIndex: lo.Attrs().Index, Dst: all, Src: own.IP,
		Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST, Table: unix.RT_TABLE_MAIN,
	})
	if err != nil {
		return fmt.Errorf("a route for %s cannot be added: %w", all, err)
	}
	return nil
}

// ipNet converts a prefix to the type of package net.
func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// listenTransparent returns a TCP or UDP socket to which the kernel's TPROXY can pass packets for any address,
// and its port.
func listenTransparent(kind int, at netip.AddrPort) (*os.File, uint16, error) {
	s, err := transparentSocket(kind, at)
	if err != nil {
		return nil, 0, err
	}
	if kind == unix.SOCK_STREAM {
		err = unix.Listen(s, backlog)
	} else if at.Addr().Is4() {
		err = unix.SetsockoptInt(s, unix.SOL_IP, unix.IP_RECVORIGDSTADDR, 1)
	} else {
		err = unix.SetsockoptInt(s, unix.SOL_IPV6, unix.IPV6_RECVORIGDSTADDR, 1)
	}
	var port int
	if err == nil {
		port, err = portOfSocket(s)
	}
	if err != nil {
		_ = unix.Close(s)
		return nil, 0, fmt.Errorf("the transparent socket cannot be opened: %w", err)
	}
	return os.NewFile(uintptr(s), "transparent"), uint16(port), nil
}

// transparentSocket returns a socket that is bound to any address, even one that the namespace does not have.
func transparentSocket(kind int, at netip.AddrPort) (int, error) {
	domain, level, option := unix.AF_INET, unix.SOL_IP, unix.IP_TRANSPARENT
	var sa unix.Sockaddr = &unix.SockaddrInet4{Port: int(at.Port())}
	if at.Addr().Is4() {
		sa.(*unix.SockaddrInet4).Addr = at.Addr().As4()
	} else {
		domain, level, option = unix.AF_INET6, unix.SOL_IPV6, unix.IPV6_TRANSPARENT
		sa = &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
	}
	s, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("a socket cannot be opened: %w", err)
	}
	for _, o := range [][2]int{{unix.SOL_SOCKET, unix.SO_REUSEADDR}, {level, option}} {
		if err := unix.SetsockoptInt(s, o[0], o[1], 1); err != nil {
			_ = unix.Close(s)
			return -1, fmt.Errorf("the transparent socket cannot be opened: %w", err)
		}
	}
	if err := unix.Bind(s, sa); err != nil {
		_ = unix.Close(s)
		return -1, fmt.Errorf("a socket cannot be bound to %s: %w", at, err)
	}
	return s, nil
}

// portOfSocket returns the local port of the socket s.
func portOfSocket(s int) (int, error) {
	sa, err := unix.Getsockname(s)
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return sa.Port, err
	case *unix.SockaddrInet6:
		return sa.Port, err
	}
	return 0, err
}

// serveBinds creates UDP sockets on request of unwire, which sends replies to datagrams from them, until the
// control socket is closed.
func (c *control) serveBinds() {
	for {
		m, files, err := c.receive()
		if err != nil {
			// The other process has ended.
			return
		}
		closeAll(files)
		if err := c.serveBind(m.Bind); err != nil {
			return
		}
	}
}

// serveBind creates a UDP socket bound to addr, and sends it to unwire.
func (c *control) serveBind(addr string) error {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return c.send(message{Error: err.Error()})
	}
	s, err := transparentSocket(unix.SOCK_DGRAM, at)
	if err != nil {
		return c.send(message{Error: err.Error()})
	}
	f := os.NewFile(uintptr(s), "answers")
	defer f.Close()
	return c.send(message{Sockets: []string{"udp"}}, f)
}

// dropInheritableCapabilities ensures that processes which this thread starts inherit no capabilities.
func dropInheritableCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("the capabilities of the process cannot be dropped: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("the capabilities of the process cannot be dropped: %w", err)
	}
	data[0].Inheritable, data[1].Inheritable = 0, 0
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("the capabilities of the process cannot be dropped: %w", err)
	}
	return nil
}

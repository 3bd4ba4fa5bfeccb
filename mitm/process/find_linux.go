package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"unwire/captures"
)

const (
	// sockDiagByFamily is the type of netlink messages that query sockets, SOCK_DIAG_BY_FAMILY.
	sockDiagByFamily = 20

	// diagRequestSize is the size of struct inet_diag_req_v2 and diagAnswerSize that of struct inet_diag_msg,
	// whose last two fields are the user and the inode.
	diagRequestSize = 56
	diagAnswerSize  = 72

	// diagTimeout limits the wait for the kernel's response, which is immediate.
	diagTimeout = time.Second

	// maxRecent limits the processes that are remembered and checked first.
	maxRecent = 32

	// maxDepth limits the number of parent processes that are followed.
	maxDepth = 64

	deletedSuffix = " (deleted)"
)

// errNotTCP is the error for a connection whose addresses are not TCP addresses.
var errNotTCP = errors.New("process: the connection is not TCP")

// A questioner queries the kernel, by netlink, for the sockets of a network namespace.
type questioner struct {
	// mu guards the fields below, and is locked during a query.
	mu sync.Mutex
	// file is the netlink socket; nil until the first query, unless the caller has supplied it.
	file *os.File
	// fail is the error that prevents all queries; nil if there is none.
	fail error
	// question is the sequence number of the last netlink query.
	question uint32
}

// A search looks for the processes that own sockets, in /proc.
type search struct {
	// recent are the ids of processes that were found, the last one first. Only one goroutine at a time uses
	// it.
	recent []int
}

// mayInspect reports whether this process may look up which process owns a socket.
func mayInspect(s socket) bool {
	return s.inode != 0 && (os.Geteuid() == 0 || int(s.uid) == os.Geteuid())
}

// close closes the netlink socket; further queries fail.
func (q *questioner) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.file != nil {
		_ = q.file.Close()
	}
	q.file, q.fail = nil, net.ErrClosed
}

// socketOf returns the kernel's data on the socket at the other end of a connection within this machine.
func (q *questioner) socketOf(conn net.Conn) (socket, error) {
	there, ok := conn.RemoteAddr().(*net.TCPAddr)
	here, ok2 := conn.LocalAddr().(*net.TCPAddr)
	if !ok || !ok2 {
		return socket{}, errNotTCP
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.file == nil && q.fail == nil {
		q.file, q.fail = openQuestions()
	}
	if q.fail != nil {
		return socket{}, q.fail
	}
	answer, err := q.ask(there, here)
	if err != nil {
		return answer, err
	}
	if answer.inode != 0 {
		return answer, nil
	}

	// Either there is no such socket, or it is closing and has no owner. If the kernel does not find our own end
	// either, it has no sock_diag for TCP.
	if ours, err := q.ask(here, there); err != nil || ours.inode == 0 {
		return socket{}, errors.ErrUnsupported
	}
	return socket{}, ErrGone
}

// openQuestions opens a netlink socket for queries about the sockets of this process's network namespace.
func openQuestions() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	wait := unix.NsecToTimeval(diagTimeout.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("setsockopt", err)
	}
	return os.NewFile(uintptr(fd), "sock_diag"), nil
}

// ask queries the kernel for the TCP socket between two addresses. The result is zero if there is none. The
// caller must have locked q.mu.
func (q *questioner) ask(from, to *net.TCPAddr) (socket, error) {
	q.question++
	fd, question := int(q.file.Fd()), q.question
	if err := unix.Sendto(fd, diagRequest(question, from, to), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return socket{}, os.NewSyscallError("sendto", err)
	}
	var buf [1024]byte
	for {
		n, _, err := unix.Recvfrom(fd, buf[:], 0)
		if err != nil {
			return socket{}, os.NewSyscallError("recvfrom", err)
		}
		answer := buf[:n]
		switch {
		case n < unix.NLMSG_HDRLEN || binary.NativeEndian.Uint32(answer[8:]) != question:
			// This is a late answer to an earlier query.
			continue
		case binary.NativeEndian.Uint16(answer[4:]) != sockDiagByFamily, n < unix.NLMSG_HDRLEN+diagAnswerSize:
			// Usually this is NLMSG_ERROR: there is no such socket.
			return socket{}, nil
		}
		last := answer[unix.NLMSG_HDRLEN+diagAnswerSize-8:]
		return socket{uid: binary.NativeEndian.Uint32(last), inode: binary.NativeEndian.Uint32(last[4:])}, nil
	}
}

// diagRequest returns a netlink query for the TCP socket between two addresses: struct nlmsghdr and struct
// inet_diag_req_v2. question is its sequence number.
func diagRequest(question uint32, from, to *net.TCPAddr) []byte {
	src, dst, family := from.IP.To4(), to.IP.To4(), byte(unix.AF_INET)
	if src == nil || dst == nil {
		src, dst, family = from.IP.To16(), to.IP.To16(), unix.AF_INET6
	}
	p := make([]byte, unix.NLMSG_HDRLEN+diagRequestSize)
	binary.NativeEndian.PutUint32(p, uint32(len(p)))
	binary.NativeEndian.PutUint16(p[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(p[6:], unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(p[8:], question)
	q := p[unix.NLMSG_HDRLEN:]
	q[0], q[1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(q[4:], ^uint32(0)) // in any state
	binary.BigEndian.PutUint16(q[8:], uint16(from.Port))
	binary.BigEndian.PutUint16(q[10:], uint16(to.Port))
	copy(q[12:28], src)
	copy(q[28:44], dst)
	copy(q[48:56], bytes.Repeat([]byte{0xff}, 8)) // INET_DIAG_NOCOOKIE
	return p
}

// find looks for the processes that own the sockets in wanted, which maps inodes to lookups, and finishes these
// lookups. It stops at the time until.
func (s *search) find(until time.Time, wanted map[uint32][]*lookup) {
	for _, pid := range slices.Clone(s.recent) {
		s.look(pid, until, wanted)
	}
	if len(wanted) == 0 {
		return
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	// Use what was read before an error.
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && !slices.Contains(s.recent, pid) {
			pids = append(pids, pid)
		}
	}

	// Recently started programs usually have high process ids.
	slices.SortFunc(pids, func(a, b int) int { return b - a })
	for _, pid := range pids {
		if len(wanted) == 0 || time.Now().After(until) {
			return
		}
		s.look(pid, until, wanted)
	}
}

// look searches the open files of the process pid for wanted sockets, and finishes their lookups.
func (s *search) look(pid int, until time.Time, wanted map[uint32][]*lookup) {
	if len(wanted) == 0 {
		return
	}
	dir, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	if err != nil {
		s.recent = slices.DeleteFunc(s.recent, func(p int) bool { return p == pid })
		return
	}
	defer dir.Close()

	// The newest descriptors are the most likely ones.
	names, _ := dir.Readdirnames(-1) // what was read before an error counts
	link := make([]byte, 64)
	for i, name := range slices.Backward(names) { // the newest files
		if i%256 == 255 && time.Now().After(until) {
			return
		}
		n, err := unix.Readlinkat(int(dir.Fd()), name, link)
		if err != nil {
			continue
		}
		inode, ok := socketInode(link[:n])
		if !ok || wanted[inode] == nil {
			continue
		}

		// A socket may be wanted by several lookups.
		p := captures.Process{PID: pid, Name: executableOf(pid)}
		for _, l := range wanted[inode] {
			l.finish(p)
		}
		s.remember(pid)
		if delete(wanted, inode); len(wanted) == 0 {
			return
		}
	}
}

// remember moves a process to the front of the processes that are searched first.
func (s *search) remember(pid int) {
	s.recent = slices.DeleteFunc(s.recent, func(p int) bool { return p == pid })
	s.recent = slices.Insert(s.recent, 0, pid)
	s.recent = s.recent[:min(len(s.recent), maxRecent)]
}

// socketInode parses the inode from the target of a link such as socket:[1234].
func socketInode(link []byte) (uint32, bool) {
	number, ok := bytes.CutPrefix(link, []byte("socket:["))
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(string(bytes.TrimSuffix(number, []byte("]"))), 10, 32)
	return uint32(n), err == nil
}

// executableOf returns the name of a process's executable.
func executableOf(pid int) string {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	if path, err := os.Readlink(filepath.Join(dir, "exe")); err == nil {
		return bounded(filepath.Base(strings.TrimSuffix(path, deletedSuffix)))
	}
	name, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return ""
	}
	return bounded(strings.TrimSpace(string(name)))
}

// descends reports whether pid is this process or a descendant of it.
func descends(pid int) bool {
	for range maxDepth {
		switch pid {
		case os.Getpid():
			return true
		case 0, 1:
			return false
		}
		pid = parentOf(pid)
	}
	return false
}

// parentOf returns the process id of a process's parent; 0 if the process has ended.
func parentOf(pid int) int {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	// The name is in parentheses and may itself contain parentheses.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return parent
}

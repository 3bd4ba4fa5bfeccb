package launch

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	packetSocket = "packets" // as messages name it

	blockBytes = 1 << 20
	blockCount = 64

	// retireAfter is when the kernel hands over a block that is not full.
	retireAfter = 50 * time.Millisecond
)

// Layout of a block: version(4) private(4) status(4) packets(4) first(4) …; of a
// packet tpacket3_hdr, aligned to 16, then sockaddr_ll, then the frame.
const (
	blockStatusAt  = 8
	blockPacketsAt = 12
	blockFirstAt   = 16
	linkAddressAt  = (unix.SizeofTpacket3Hdr + 15) &^ 15
	packetTypeAt   = linkAddressAt + 10
	minPacket      = linkAddressAt + unix.SizeofSockaddrLinklayer
)

// openPackets opens a socket that takes what arrives at the loopback device,
// with a ring that it is written to. Every packet of a namespace in which all
// addresses are local arrives there once.
func openPackets() (*os.File, error) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return nil, fmt.Errorf("packet socket: %w", err)
	}
	s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("packet socket: %w", err)
	}
	if err := bindPackets(s, lo.Index); err != nil {
		_ = unix.Close(s)
		return nil, fmt.Errorf("packet socket: %w", err)
	}
	return os.NewFile(uintptr(s), packetSocket), nil
}

func bindPackets(s, device int) error {
	if err := unix.SetsockoptInt(s, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return err
	}
	// Before Linux 4.20, the reader skips them in the ring.
	_ = unix.SetsockoptInt(s, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	err := unix.SetsockoptTpacketReq3(s, unix.SOL_PACKET, unix.PACKET_RX_RING, &unix.TpacketReq3{
		Block_size: blockBytes, Block_nr: blockCount,
		Frame_size: 2048, Frame_nr: blockBytes / 2048 * blockCount,
		Retire_blk_tov: uint32(retireAfter.Milliseconds()),
	})
	if err != nil {
		return err
	}
	all := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	return unix.Bind(s, &unix.SockaddrLinklayer{Protocol: all, Ifindex: device})
}

// A packetReader reads the ring of a packet socket.
type packetReader struct {
	packet  func(t time.Time, data []byte, length int)
	payload atomic.Int64 // bytes of TCP so far

	socket int
	ring   []byte
	stop   chan struct{}
	done   chan struct{}
	counts Packets
	last   time.Time // of a packet
}

// start begins to read the ring of a socket, of which it keeps a copy.
func (p *packetReader) start(f *os.File) error {
	s, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("packet socket: %w", err)
	}
	ring, err := unix.Mmap(s, 0, blockBytes*blockCount, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		_ = unix.Close(s)
		return fmt.Errorf("ring of packets: %w", err)
	}
	p.socket, p.ring, p.stop, p.done = s, ring, make(chan struct{}), make(chan struct{})
	go p.readRing()
	return nil
}

// finish takes what was recorded until now, and ends.
func (p *packetReader) finish() Packets {
	if p.done == nil {
		return p.counts // never started
	}
	time.Sleep(2 * retireAfter) // the last block is handed over
	close(p.stop)
	<-p.done
	if stats, err := unix.GetsockoptTpacketStatsV3(p.socket, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		p.counts.Dropped = int64(stats.Drops)
	}
	_ = unix.Munmap(p.ring)
	_ = unix.Close(p.socket)
	return p.counts
}

func (p *packetReader) readRing() {
	defer close(p.done)
	for n := 0; ; n = (n + 1) % blockCount {
		block := p.ring[n*blockBytes:][:blockBytes]
		// It is aligned: a block begins with a page.
		status := (*uint32)(unsafe.Pointer(&block[blockStatusAt]))
		for atomic.LoadUint32(status)&unix.TP_STATUS_USER == 0 {
			select {
			case <-p.stop:
				return
			default:
			}
			poll := []unix.PollFd{{Fd: int32(p.socket), Events: unix.POLLIN | unix.POLLERR}}
			// If this is interrupted, the block is checked again.
			_, _ = unix.Poll(poll, int(retireAfter.Milliseconds()))
		}
		p.readBlock(block)
		atomic.StoreUint32(status, unix.TP_STATUS_KERNEL)
	}
}

// readBlock reads the packets of a block. The kernel wrote it, so a length that
// leads out of it ends it only.
func (p *packetReader) readBlock(b []byte) {
	at := int(binary.NativeEndian.Uint32(b[blockFirstAt:]))
	for range binary.NativeEndian.Uint32(b[blockPacketsAt:]) {
		if at < 0 || at+minPacket > len(b) {
			return
		}
		// It is aligned: the kernel aligns to 16.
		h := (*unix.Tpacket3Hdr)(unsafe.Pointer(&b[at]))
		from, kept := at+int(h.Mac), int(h.Snaplen)
		if from+kept > len(b) {
			return
		}
		if b[at+packetTypeAt] != unix.PACKET_OUTGOING {
			p.counts.Recorded++
			if h.Snaplen < h.Len {
				p.counts.Cut++
			}
			p.payload.Add(tcpPayloadLength(b[from : from+kept]))
			// Processors' stamps can be microseconds apart.
			if now := time.Unix(int64(h.Sec), int64(h.Nsec)); now.After(p.last) {
				p.last = now
			}
			p.packet(p.last, b[from:from+kept], int(h.Len))
		}
		if h.Next_offset == 0 {
			return
		}
		at += int(h.Next_offset)
	}
}

// tcpPayloadLength returns how many bytes of TCP an Ethernet frame carries, as far as its
// headers are the usual ones.
func tcpPayloadLength(frame []byte) int64 {
	const ethernet, minTCP = 14, 20
	at := ethernet
	switch {
	case len(frame) < ethernet+20+minTCP:
		return 0
	case frame[at]>>4 == 4 && frame[at+9] == unix.IPPROTO_TCP:
		at += int(frame[at]&0x0f) * 4
	case frame[at]>>4 == 6 && frame[at+6] == unix.IPPROTO_TCP:
		at += 40
	default:
		return 0
	}
	if at+minTCP > len(frame) {
		return 0
	}
	return max(0, int64(len(frame)-at-int(frame[at+12]>>4)*4))
}

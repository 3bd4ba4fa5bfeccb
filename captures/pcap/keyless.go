package pcap

import (
	"context"
	"io"
	"time"

	"unwire/captures/pcap/packet"
)

// maxKeyless limits the connections that are read again when keys came too late.
const maxKeyless = 4096

// A keyless connection is one that no longer waited for its keys, as too much waited.
type keyless struct {
	id     connID
	random [32]byte
	report Connection
}

// A connID identifies a connection among all of a file.
type connID struct {
	addrs   pair
	started time.Time
}

// keepKeyless keeps the report of a connection whose keys may still come, and reports
// whether it did.
func (im *importer) keepKeyless(c *conn) bool {
	if im.options.Live == nil || im.options.Live.Again == nil || !c.gaveUpKeys || len(im.keyless) == maxKeyless {
		return false
	}
	im.keyless = append(im.keyless, keyless{connID{c.addrs, c.report.Started}, c.noKeyRandom, c.report})
	return true
}

// importKeyless reads the packets of connections again whose keys came too late. The
// other keyless ones are reported.
func (im *importer) importKeyless(ctx context.Context) error {
	only := map[connID]int64{}
	for _, k := range im.keyless {
		if im.options.Keys.sessions[k.random] == nil {
			im.countReport(k.report)
			continue
		}
		only[k.id] = k.report.Number
	}
	im.keyless = nil
	if len(only) == 0 {
		return nil
	}
	r, err := im.options.Live.Again()
	if err != nil {
		return err
	}
	again := &importer{options: im.options, conns: map[pair]*conn{}, budget: &budget{left: maxBuffered}, only: only}
	again.options.Live = nil
	packets, err := packet.NewReader(struct{ io.Reader }{r}, nil)
	if err == nil {
		err = again.read(ctx, packets)
	}
	again.finishAll()
	im.summary.Exchanges += again.summary.Exchanges
	im.summary.Undecoded += again.summary.Undecoded
	if again.recordingError != nil {
		return again.recordingError
	}
	return err
}

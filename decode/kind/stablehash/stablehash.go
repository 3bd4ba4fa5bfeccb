// Package stablehash computes the hashes by which package kind samples messages and distinct values. They are the same
// in every process, because evidence of several processes is merged.
//
//	h := stablehash.Bytes(payload)
//
// They do not resist collisions on purpose: a collision only makes a sample slightly worse.
package stablehash

import "encoding/binary"

// Mix returns a hash of v by the finalizer of SplitMix64: a bijection, so different numbers never collide. Source:
// https://prng.di.unimi.it/splitmix64.c
func Mix(v uint64) uint64 {
	v ^= v >> 30
	v *= 0xbf58476d1ce4e5b9
	v ^= v >> 27
	v *= 0x94d049bb133111eb
	return v ^ v>>31
}

// Bytes hashes the first 128 bytes, the last 8 bytes and the length of a payload. It must be the same in
// every process, because evidence is merged across processes.
func Bytes(p []byte) uint64 {
	h := uint64(len(p))*0x9e3779b97f4a7c15 + 1
	tail := p[max(0, len(p)-8):]
	for p = p[:min(len(p), 128)]; len(p) >= 8; p = p[8:] {
		h = Mix(h ^ binary.LittleEndian.Uint64(p))
	}
	return Mix(Mix(h^Word(p)) ^ Word(tail))
}

// Word returns the first bytes of p, up to eight, as a little-endian number.
func Word(p []byte) (v uint64) {
	if len(p) >= 8 {
		return binary.LittleEndian.Uint64(p)
	}
	for i := len(p) - 1; i >= 0; i-- {
		v = v<<8 | uint64(p[i])
	}
	return v
}

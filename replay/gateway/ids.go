package gateway

import (
	"crypto/rand"
	"strconv"
	"strings"
)

// The ids of tool calls that clients see have the form sess_SESSION__call_N, where SESSION is 12
// characters of base 62. They are at most 40 bytes of [A-Za-z0-9_-], which every public API accepts.
const (
	sessionPrefix = "sess_"
	callInfix     = "__call_"
	sessionLength = 12
	base62        = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// newSessionID returns a random session id of 12 characters. Random bytes above the largest multiple of
// 62 are discarded, so that all ids are equally likely.
func newSessionID() string {
	id := make([]byte, 0, sessionLength)
	var random [2 * sessionLength]byte
	for {
		_, _ = rand.Read(random[:]) // never fails: it ends the program instead
		for _, b := range random {
			if b < 256/62*62 {
				if id = append(id, base62[b%62]); len(id) == sessionLength {
					return string(id)
				}
			}
		}
	}
}

// callID returns the client's id for tool call n, from 1, of a session.
func callID(session string, n int) string {
	return sessionPrefix + session + callInfix + strconv.Itoa(n)
}

// sessionOf parses a tool call id made by callID; ok is false for any other id.
func sessionOf(callID string) (session string, n int, ok bool) {
	rest, ok := strings.CutPrefix(callID, sessionPrefix)
	if !ok {
		return "", 0, false
	}
	session, number, ok := strings.Cut(rest, callInfix)
	if !ok || len(session) != sessionLength || strings.Trim(session, base62) != "" {
		return "", 0, false
	}
	n, err := strconv.Atoi(number)
	return session, n, err == nil && n > 0 && strconv.Itoa(n) == number
}

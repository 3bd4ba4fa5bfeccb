//go:build !linux

package control

import "net"

// sameUser reports whether the other side of a connection is a process of this user. Here
// the folder of the socket and the token alone tell.
func sameUser(net.Conn) bool { return true }

// Package render prints for people: frames, hex, and the values of differences.
package render

// Package render prints for people: frames, fields, hex, and the values of differences.
package render

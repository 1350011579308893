// Package testdata holds sessions written for this project.
//
// demo/ is an agent directory as the client leaves it, worth looking at:
// `sessionfs --demo` serves it. cases/ has one small session for each oddity
// of the format, with what a reader must see in it; README.md lists them.
// conformance/ has sessions with what the real client reads in them.
package testdata

import (
	"embed"
	"io/fs"
)

//go:embed all:demo
var files embed.FS

// Demo is the sample store, rooted in the agent directory: sessions, archive,
// blobs, terminal-sessions and history.db are at its top. Times of files are not
// embedded; the last entry of a session tells when it was last written.
func Demo() fs.FS {
	store, err := fs.Sub(files, "demo")
	if err != nil {
		panic("testdata: " + err.Error()) // only an invalid name fails
	}
	return store
}

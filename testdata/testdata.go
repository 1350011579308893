// Package testdata holds sessions written for this project.
//
// demo/ is an agent directory as the client leaves it, worth looking at, and
// demo-NAME/ are those of other agents on the same project:
// `sessionfs --demo` serves them. cases/ has one small session for each oddity
// of the format, with what a reader must see in it; README.md lists them.
// conformance/ has sessions with what the real client reads in them.
package testdata

import (
	"embed"
	"io/fs"
)

//go:embed all:demo all:demo-*
var files embed.FS

// Demo is the sample store, rooted in the agent directory: sessions, archive,
// blobs, terminal-sessions and history.db are at its top. Times of files are not
// embedded; the last entry of a session tells when it was last written.
func Demo() fs.FS { return sub("demo") }

// DemoOf is the directory of another agent in the sample store: sessions and the history of prompts. It is nil where the
// agent has none there.
func DemoOf(agent string) fs.FS {
	dir := "demo-" + agent
	if _, err := fs.Stat(files, dir); err != nil {
		return nil
	}
	return sub(dir)
}

// sub returns a directory of the embedded files.
func sub(dir string) fs.FS {
	store, err := fs.Sub(files, dir)
	if err != nil {
		panic("testdata: " + err.Error()) // only an invalid name fails
	}
	return store
}

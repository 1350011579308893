// Package testdata holds sessions written for this project.
//
// demo/ is an agent directory as the client leaves it, worth looking at, and
// demo-claude/ and demo-codex/ are those of other agents on the same project:
// `sessionfs --demo` serves them. cases/ has one small session for each oddity
// of the format, with what a reader must see in it; README.md lists them.
// conformance/ has sessions with what the real client reads in them.
package testdata

import (
	"embed"
	"io/fs"
)

//go:embed all:demo all:demo-claude all:demo-codex
var files embed.FS

// Demo is the sample store, rooted in the agent directory: sessions, archive,
// blobs, terminal-sessions and history.db are at its top. Times of files are not
// embedded; the last entry of a session tells when it was last written.
func Demo() fs.FS { return sub("demo") }

// DemoClaude is the directory of Claude Code: sessions and the history of prompts.
func DemoClaude() fs.FS { return sub("demo-claude") }

// DemoCodex is the one of Codex.
func DemoCodex() fs.FS { return sub("demo-codex") }

func sub(dir string) fs.FS {
	store, err := fs.Sub(files, dir)
	if err != nil {
		panic("testdata: " + err.Error()) // only an invalid name fails
	}
	return store
}

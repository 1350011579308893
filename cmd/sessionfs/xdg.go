package main

import (
	"os"
	"path/filepath"

	"sessionfs/mountopts"
)

// A client that was told to follow the XDG Base Directory Specification has the parts of its agent directory in two
// places (docs/format.md, Files): sessions, blobs and databases in $XDG_DATA_HOME/omp, the breadcrumbs of terminals in
// $XDG_STATE_HOME/omp. It uses each of them as soon as it exists.

// clientName is the client's directory in those of the specification.
const clientName = "omp"

// xdgDir returns the client's directory below the one that an environment variable names, or "" if there is none.
func xdgDir(getenv func(string) string, variable string) string {
	base := getenv(variable)
	if !filepath.IsAbs(base) {
		return ""
	}
	dir := filepath.Join(base, clientName)
	if !isDir(dir) {
		return ""
	}
	return dir
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// placeSource replaces the default of SOURCE by the place where a client that follows the specification has it, or by
// pi's agent directory if there is none of omp, and finds the breadcrumbs if SOURCE is the client's default.
func placeSource(c *mountopts.Command, getenv func(string) string) {
	if getenv("PI_CODING_AGENT_DIR") != "" || c.Options.Demo {
		return
	}
	o, usual := &c.Options, mountopts.DefaultSource(getenv)
	data := xdgDir(getenv, "XDG_DATA_HOME")
	switch {
	case !c.DefaultSource:
	case data != "":
		o.Source = data
	case !isDir(usual):
		if pi := filepath.Join(getenv("HOME"), ".pi", "agent"); isDir(pi) {
			o.Source = pi
		}
	}
	switch state := xdgDir(getenv, "XDG_STATE_HOME"); {
	case data != "" && !isSame(o.Source, data), data == "" && !isSame(o.Source, usual):
		// Another agent directory is whole.
	case state != "":
		o.State = state
	case data != "":
		o.State = usual
	}
}

// isSame reports whether two paths lead to the same directory.
func isSame(a, b string) bool {
	first, err1 := os.Stat(a)
	second, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(first, second)
}

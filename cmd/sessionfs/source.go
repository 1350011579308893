package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sessionfs/mountopts"
)

// resolveSource finds SOURCE where it is not given, makes it absolute, with its symlinks resolved, and unpacks the sample
// store where that is SOURCE, or refuses it. A database stays as it is given; opening it tells whether it can be used.
// Callers must call remove in any case.
func resolveSource(o *mountopts.Options, stderr io.Writer) (remove func(), err error) {
	remove = func() {}
	isDefault := o.Source == ""
	if o.Demo {
		dir, err := unpackDemo()
		if err != nil {
			return remove, err
		}
		o.Source, o.FSName = dir, cmp.Or(o.FSName, "demo")
		remove = func() { os.RemoveAll(dir) }
	} else if placeSource(o, os.Getenv); o.Source == "" {
		return remove, refuse(exitUsage, "SOURCE is not given, and neither PI_CODING_AGENT_DIR nor HOME is set")
	}
	if err := o.CheckSource(); err != nil {
		return remove, refuse(exitUsage, "%s", err)
	}
	if mountopts.IsDatabase(o.Source) {
		if o.Blobs != "" && o.Blobs != mountopts.BlobsInDatabase {
			o.Blobs, err = absolute(o.Blobs)
		}
		return remove, err
	}
	source, warning, err := checkSource(o.Source, isDefault)
	if err != nil {
		return remove, err
	}
	if warning != "" {
		fmt.Fprintln(stderr, "sessionfs: warning:", warning)
	}
	o.SourceAs, _ = filepath.Abs(o.Source) // checkSource has refused what has no absolute path
	o.Source = source
	return remove, nil
}

// checkSource returns SOURCE absolute and with its symlinks resolved, and a warning for the user or "", or refuses
// it.
func checkSource(source string, isDefault bool) (path, warning string, err error) {
	hint := ""
	if isDefault {
		hint = "\nIt is the default; give SOURCE if the agent directory is elsewhere, or try 'sessionfs --demo MOUNTPOINT'."
	}
	abs, err := absolute(source)
	if err != nil {
		return "", "", refuse(exitSource, "SOURCE %s cannot be resolved: %s", source, err)
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, iofs.ErrNotExist) {
		return "", "", refuse(exitSource, "SOURCE %s does not exist%s", abs, hint)
	}
	if err != nil {
		return "", "", refuse(exitSource, "SOURCE %s cannot be used: %s%s", abs, err, hint)
	}
	names, err := os.ReadDir(resolved) // on some network file systems a successful open means nothing
	if err == nil {
		_, err = os.Lstat(resolved + "/.") // listing needs r; opening what is listed needs x
	}
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return "", "", refuse(exitSource, "SOURCE %s is not a directory; it must be the agent directory, which holds sessions/%s", resolved, hint)
	case err != nil:
		return "", "", refuse(exitSource, "SOURCE %s cannot be read by user %d: %s%s", resolved, os.Geteuid(), err, hint)
	}
	warning, err = checkAgentDir(abs, resolved, names, os.Getenv)
	return resolved, warning, err
}

// absolute puts the working directory before a relative path. Unlike filepath.Abs it keeps "..", which after a
// symlink does not lead back.
func absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	wd, err := os.Getwd()
	return wd + "/" + path, err
}

// usualSource returns the agent directory that the client itself would use if it did not follow the XDG Base Directory
// Specification, or "" if that is unknown.
func usualSource(getenv func(string) string) string {
	if home := getenv("HOME"); home != "" {
		return cmp.Or(getenv("PI_CODING_AGENT_DIR"), filepath.Join(home, ".omp", "agent"))
	}
	return getenv("PI_CODING_AGENT_DIR")
}

// placeSource finds SOURCE if it is not given, and the breadcrumbs if SOURCE is the client's default. A client that was told
// to follow the specification has the parts of its agent directory in two places (docs/format.md, Files): sessions, blobs
// and databases in $XDG_DATA_HOME/omp, the breadcrumbs of terminals in $XDG_STATE_HOME/omp. It uses each of them as soon as
// it exists. Without any of omp's, pi's agent directory is SOURCE.
func placeSource(o *mountopts.Options, getenv func(string) string) {
	usual, given := usualSource(getenv), o.Source
	o.Source = cmp.Or(given, usual)
	if getenv("PI_CODING_AGENT_DIR") != "" || usual == "" {
		return
	}
	data, state := xdgDir(getenv, "XDG_DATA_HOME"), xdgDir(getenv, "XDG_STATE_HOME")
	if given == "" {
		pi := filepath.Join(getenv("HOME"), ".pi", "agent")
		switch {
		case data != "":
			o.Source = data
		case !isDir(usual) && isDir(pi):
			o.Source = pi
		}
	}
	if !isSame(o.Source, cmp.Or(data, usual)) {
		return // another agent directory is whole
	}
	if o.State = state; state == "" && data != "" {
		o.State = usual
	}
}

// xdgDir returns the client's directory below the one that an environment variable names, or "" if there is none.
func xdgDir(getenv func(string) string, variable string) string {
	dir := filepath.Join(getenv(variable), "omp")
	if !filepath.IsAbs(dir) || !isDir(dir) {
		return ""
	}
	return dir
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isSame reports whether two paths lead to the same directory.
func isSame(a, b string) bool {
	first, err1 := os.Stat(a)
	second, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(first, second)
}

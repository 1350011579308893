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

// resolveSource makes SOURCE absolute, with its symlinks resolved, and unpacks the sample store where that is SOURCE, or
// refuses it. A database stays as it is given; opening it tells whether it can be used. Callers must call remove in any
// case.
func resolveSource(c *mountopts.Command, stderr io.Writer) (remove func(), err error) {
	placeSource(c, os.Getenv)
	o, remove := &c.Options, func() {}
	if o.Demo {
		dir, err := unpackDemo()
		if err != nil {
			return remove, err
		}
		o.Source, o.FSName = dir, cmp.Or(o.FSName, "demo")
		remove = func() { os.RemoveAll(dir) }
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
	source, warning, err := checkSource(o.Source, c.DefaultSource)
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
	if err := canList(resolved); errors.Is(err, unix.ENOTDIR) {
		return "", "", refuse(exitSource, "SOURCE %s is not a directory; it must be the agent directory, which holds sessions/%s", resolved, hint)
	} else if err != nil {
		return "", "", refuse(exitSource, "SOURCE %s cannot be read by user %d: %s%s", resolved, os.Geteuid(), err, hint)
	}
	warning, err = checkAgentDir(abs, resolved, os.Getenv)
	return resolved, warning, err
}

// canList reads names of a directory: on some network file systems a successful open means nothing.
func canList(dir string) error {
	_, err := sample(dir)
	if err == nil {
		_, err = os.Lstat(dir + "/.") // listing needs r; opening what is listed needs x
	}
	return err
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

package main

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"time"

	"sessionfs/scripts/served"
)

// mount is a file system that a daemon serves.
type mount = served.FS

// withOurs calls f with a fresh mount of an agent directory, and notes the daemon's peak memory after.
func (b *bench) withOurs(source string, res *result, f func(*mount)) {
	line := func(at string) []string { return append(slices.Clone(b.daemon), source, at) }
	b.withMount(line, func(mt *mount) {
		f(mt)
		res.peak = max(res.peak, mt.Memory("VmHWM"))
	})
}

// measured is repeat with a fresh mount of an agent directory each time. The first result notes the peak memory.
func (b *bench) measured(source string, res []result, once func(*mount)) []result {
	return b.repeat(res, func() { b.withOurs(source, &res[0], once) })
}

// withLoopback calls f with a directory that go-fuse's loopback example serves, with its default options.
func (b *bench) withLoopback(source string, f func(at string)) {
	line := func(at string) []string { return []string{b.loopback, "-q", at, source} }
	b.withMount(line, func(mt *mount) { f(mt.At) })
}

// withMount calls f with a mount, and unmounts. args returns the command line of the daemon for a mount point.
func (b *bench) withMount(args func(at string) []string, f func(*mount)) {
	m := b.mount(args)
	defer unmount(m)
	f(m)
}

// mount starts a daemon as a user would, at a new mount point, and waits until the mount answers.
func (b *bench) mount(args func(at string) []string) *mount {
	at, err := os.MkdirTemp(b.dir, "mnt-")
	b.must(err)
	argv := args(at)
	cmd := exec.CommandContext(b.ctx, argv[0], argv[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	m, err := served.Start(cmd, at, time.Minute)
	if err != nil {
		b.fail("%w: %s", err, stderr.String())
	}
	return m
}

// unmount unmounts and waits for the daemon's end. Where another process has a copy of our mounts, in a
// mount namespace that it made meanwhile, the daemon never learns of the unmount: then it is ended.
func unmount(m *mount) {
	// Lazily: a process that just ended may still hold something open.
	_ = exec.Command("fusermount3", "-u", "-z", m.At).Run()
	if !m.Ends(3 * time.Second) {
		_ = m.Process.Kill()
	}
}

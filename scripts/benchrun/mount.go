package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"sessionfs/scripts/served"
)

// mount is a file system that a daemon serves.
type mount struct {
	*served.FS
	dir string
}

// withOurs calls f with a fresh mount of an agent directory, and notes the daemon's peak memory after.
func (b *bench) withOurs(source string, res *result, f func(*mount)) {
	b.withMount(func(at string) []string { return append(slices.Clone(b.daemon), source, at) }, func(mt *mount) {
		f(mt)
		res.peak = max(res.peak, mt.Memory("VmHWM"))
	})
}

// withLoopback calls f with a directory that go-fuse's loopback example serves, with its default options.
func (b *bench) withLoopback(source string, f func(at string)) {
	b.withMount(func(at string) []string { return []string{b.loopback, "-q", at, source} }, func(mt *mount) { f(mt.dir) })
}

// withMount calls f with a mount, and unmounts.
func (b *bench) withMount(args func(at string) []string, f func(*mount)) {
	m, failed := b.mount(args), true
	defer func() {
		if err := m.close(); !failed { // else what went wrong before is said
			b.must(err)
		}
	}()
	f(m)
	failed = false
}

// mount starts a daemon as a user would.
func (b *bench) mount(args func(at string) []string) *mount {
	at, err := os.MkdirTemp(b.dir, "mnt-")
	b.must(err)
	argv := args(at)
	cmd := exec.CommandContext(b.ctx, argv[0], argv[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	fs, err := served.Start(cmd, at, time.Minute)
	if err != nil {
		b.fail("%w: %s", err, stderr.String())
	}
	return &mount{fs, at}
}

func (m *mount) path(elem ...string) string {
	return filepath.Join(append([]string{m.dir}, elem...)...)
}

// close unmounts and waits for the daemon's end. Where another process has a copy of our mounts, in a
// mount namespace that it made meanwhile, the daemon never learns of the unmount: then it is ended.
func (m *mount) close() error {
	// Lazily: a process that just ended may still hold something open.
	err := exec.Command("fusermount3", "-u", "-z", m.dir).Run()
	if !m.Ends(3 * time.Second) {
		_ = m.Process.Kill()
	}
	return errors.Join(err, os.Remove(m.dir))
}

//go:build !linux

package fs

import "sessionfs/mountopts"

// ShownMounts returns nil: servers of NFS do not tell their options.
func ShownMounts() []mountopts.Options { return nil }

// ShownAt returns no options.
func ShownAt(string) (o mountopts.Options, err error) { return o, nil }

// MountEntry is a mount. Nothing is known of mounts here.
type MountEntry struct{}

// MountAt returns no mount.
func MountAt(string) (found MountEntry, ok bool) { return found, false }

// IsSessionfs reports false.
func (MountEntry) IsSessionfs() bool { return false }

// IsOurs reports false.
func (MountEntry) IsOurs() bool { return false }

//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"sessionfs/mountopts"
)

// mountEntry holds the fields that we need of a line of /proc/self/mountinfo.
type mountEntry struct {
	mountpoint string
	fsType     string
	source     string
	uid, gid   int    // user_id and group_id of a FUSE mount, the user who made it; -1 for other types
	minor      uint32 // of the device number, by which fusectl names the connection of a FUSE mount
}

// isSessionfs reports whether it is a mount of this program, by any user.
func (e mountEntry) isSessionfs() bool { return e.fsType == mountopts.FSType }

// ours reports whether it is a mount of this program by this user.
func (e mountEntry) ours() bool { return e.isSessionfs() && e.uid == os.Geteuid() }

// allMounts reads the mount table.
func allMounts() []mountEntry {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var all []mountEntry
	for line := range strings.Lines(string(data)) {
		if e, err := parseMountinfo(line); err == nil {
			all = append(all, e)
		}
	}
	return all
}

// mountAt returns the topmost mount at path, which must be absolute and resolved.
func mountAt(path string) (mountEntry, bool) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return mountEntry{}, false
	}
	return topmost(string(data), path)
}

// topmost returns the last mount at path, which is the uppermost one.
func topmost(mountinfo, path string) (found mountEntry, ok bool) {
	for line := range strings.Lines(mountinfo) {
		if e, err := parseMountinfo(line); err == nil && e.mountpoint == path {
			found, ok = e, true
		}
	}
	return found, ok
}

// mountWith returns a mount of this program that contains path or whose SOURCE is path, which must be absolute and
// resolved.
func mountWith(path string) (mountEntry, bool) {
	for _, e := range allMounts() {
		if e.isSessionfs() && (e.source == path || strings.HasPrefix(path, e.mountpoint+"/")) {
			return e, true
		}
	}
	return mountEntry{}, false
}

// parseMountinfo parses a line such as this one (proc(5))
//
//	36 35 0:42 / /mnt rw,nosuid shared:1 - fuse.sessionfs /home/u/.omp/agent rw,user_id=0,group_id=0
func parseMountinfo(line string) (mountEntry, error) {
	mount, super, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
	// Not strings.Fields: the kernel escapes ASCII white space only.
	fields, superFields := strings.Split(mount, " "), strings.Split(super, " ")
	if !ok || len(fields) < 6 || len(superFields) < 3 {
		return mountEntry{}, fmt.Errorf("unexpected line in mountinfo: %q", line)
	}
	e := mountEntry{
		mountpoint: unescapeOctal(fields[4]),
		fsType:     unescapeOctal(superFields[0]),
		source:     unescapeOctal(superFields[1]),
		uid:        -1,
		gid:        -1,
	}
	_, minor, _ := strings.Cut(fields[2], ":")
	number, err := strconv.ParseUint(minor, 10, 32)
	if err != nil {
		return mountEntry{}, fmt.Errorf("unexpected device in mountinfo: %q", line)
	}
	e.minor = uint32(number)
	for option := range strings.SplitSeq(superFields[len(superFields)-1], ",") {
		setID(&e.uid, option, "user_id=")
		setID(&e.gid, option, "group_id=")
	}
	return e, nil
}

// setID sets id to the value of option if that begins with key.
func setID(id *int, option, key string) {
	if value, ok := strings.CutPrefix(option, key); ok {
		if n, err := strconv.Atoi(value); err == nil {
			*id = n
		}
	}
}

// unescapeOctal replaces the kernel's escapes \040, \011, \012 and \134; anything else is left as it is.
func unescapeOctal(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"sessionfs/mountopts"
)

// mountEntry is one line of /proc/self/mountinfo, what we need of it.
type mountEntry struct {
	mountpoint string
	fsType     string
	source     string
	uid, gid   int // user_id and group_id of a FUSE mount, the user who made it; -1 for other types
}

// isSessionfs says whether it is a mount of this program, whoever made it.
func (e mountEntry) isSessionfs() bool { return e.fsType == mountopts.FSType }

// ours says whether it is a mount of this program, made by this user.
func (e mountEntry) ours() bool { return e.isSessionfs() && e.uid == os.Geteuid() }

// mountAt returns the topmost mount at path, which must be absolute and resolved.
func mountAt(path string) (mountEntry, bool) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return mountEntry{}, false
	}
	return topmost(string(data), path)
}

// topmost finds the last, so the uppermost, mount at path.
func topmost(mountinfo, path string) (found mountEntry, ok bool) {
	for line := range strings.Lines(mountinfo) {
		if e, err := parseMountinfo(line); err == nil && e.mountpoint == path {
			found, ok = e, true
		}
	}
	return found, ok
}

// mountWith returns a mount of this program that path, absolute and resolved, lies in or is SOURCE of.
func mountWith(path string) (mountEntry, bool) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return mountEntry{}, false
	}
	for line := range strings.Lines(string(data)) {
		e, err := parseMountinfo(line)
		if err == nil && e.isSessionfs() && (e.source == path || strings.HasPrefix(path, e.mountpoint+"/")) {
			return e, true
		}
	}
	return mountEntry{}, false
}

// parseMountinfo reads a line such as (proc(5))
//
//	36 35 0:42 / /mnt rw,nosuid shared:1 - fuse.sessionfs /home/u/.omp/agent rw,user_id=0,group_id=0
func parseMountinfo(line string) (mountEntry, error) {
	mount, super, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
	// Not strings.Fields: of all blanks, the kernel escapes only the ASCII ones.
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
	for option := range strings.SplitSeq(superFields[len(superFields)-1], ",") {
		setID(&e.uid, option, "user_id=")
		setID(&e.gid, option, "group_id=")
	}
	return e, nil
}

// setID sets an id to the value of an option if it is the one that begins with key.
func setID(id *int, option, key string) {
	if value, ok := strings.CutPrefix(option, key); ok {
		if n, err := strconv.Atoi(value); err == nil {
			*id = n
		}
	}
}

// unescapeOctal undoes the kernel's \040 for a blank, \011, \012 and \134; anything else is left as it is.
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

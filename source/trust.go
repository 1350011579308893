package source

import (
	"fmt"
	iofs "io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// An agent obeys files of the directory that it starts in: instructions, hooks, servers to run.
// Where others can write these, they decide its actions.

// maxLinks is how many links a path may have, as in the kernel.
const maxLinks = 40

// CheckOwn returns an error, for a person, if others than this user and root can change files in a
// directory: by the directory itself, one above it, or a link in its path. In a directory above that
// has the sticky bit, such as /tmp, others cannot rename files of this user.
func CheckOwn(dir string) error {
	self := trusted{uid: os.Geteuid(), isGroup: isPrivateGroup}
	return self.check(dir)
}

// trusted knows the users that may change directories.
type trusted struct {
	uid     int
	isGroup func(gid uint32) bool // whether a group is this user's own
}

// check is CheckOwn. It walks along the path as the kernel does: each link in it is replaced by its target, whose
// parts are walked next.
func (t trusted) check(dir string) error {
	at := "/" // the directory that is reached, without links
	rest := strings.Split(dir, "/")
	links := 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		err := t.checkDir(at, isAbove)
		if err != nil {
			return err
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil {
			return err
		}
		if info.Mode().Type() != iofs.ModeSymlink {
			at = next
			continue
		}
		links++
		if links > maxLinks {
			return &iofs.PathError{Op: "open", Path: dir, Err: unix.ELOOP}
		}
		err = t.checkOwner(next, info)
		if err != nil {
			return err
		}
		target, err := os.Readlink(next)
		if err != nil {
			return err
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return t.checkDir(at, isStart)
}

// dirRole is the part that a directory has in the start of an agent.
type dirRole int

const (
	isStart dirRole = iota // the agent starts in it
	isAbove                // the path leads through it
)

// checkDir returns an error if others can change the content of the directory that an agent starts in, or, of one
// above, replace a name in it.
func (t trusted) checkDir(dir string, role dirRole) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	err = t.checkOwner(dir, info)
	if err != nil {
		return err
	}
	mode := info.Mode()
	if role == isAbove && mode&iofs.ModeSticky != 0 { // others replace only names of their own
		return nil
	}
	const othersWrite, groupWrites = 0o002, 0o020
	if mode&othersWrite != 0 {
		return fmt.Errorf("every user may write to %s", dir)
	}
	if mode&groupWrites == 0 {
		return nil
	}
	gid := info.Sys().(*syscall.Stat_t).Gid
	switch {
	case hasACL(dir):
		return fmt.Errorf("an access control list lets others write to %s", dir)
	case !t.isGroup(gid):
		return fmt.Errorf("the group %s may write to %s", groupName(gid), dir)
	}
	return nil
}

// checkOwner returns an error unless a file is this user's or root's.
func (t trusted) checkOwner(path string, info iofs.FileInfo) error {
	uid := info.Sys().(*syscall.Stat_t).Uid
	if uid == 0 || int(uid) == t.uid {
		return nil
	}
	return fmt.Errorf("%s belongs to user %s", path, userName(uid))
}

// hasACL reports whether a directory has an access control list. The group's bits are then the most
// that it grants anybody.
func hasACL(dir string) bool {
	n, err := unix.Lgetxattr(dir, "system.posix_acl_access", nil)
	return err == nil && n > 0
}

// maxAccounts bounds the size of a list of users or groups, in bytes.
const maxAccounts = 16 << 20

// isPrivateGroup reports whether a group is this user's alone: it has his name, and nobody else is a
// member.
func isPrivateGroup(gid uint32) bool {
	self, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	if err != nil || groupName(gid) != self.Username {
		return false
	}
	groups, groupsErr := storage.ReadNamed("/etc/group", maxAccounts)
	users, usersErr := storage.ReadNamed("/etc/passwd", maxAccounts)
	if groupsErr != nil || usersErr != nil {
		return false
	}
	return isAlone(self.Username, strconv.Itoa(int(gid)), string(groups), string(users))
}

// isAlone reports whether a user is the only member of a group, by the texts of group(5), lines of
// name:password:gid:member,member, and of passwd(5), lines of name:password:uid:gid and more.
func isAlone(name, gid, groups, users string) bool {
	for line := range strings.Lines(groups) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		isGroup := len(fields) > 3 && fields[2] == gid
		if !isGroup {
			continue
		}
		for member := range strings.SplitSeq(fields[3], ",") {
			if member != "" && member != name {
				return false
			}
		}
	}
	for line := range strings.Lines(users) {
		fields := strings.Split(line, ":")
		isMember := len(fields) > 3 && fields[3] == gid
		if isMember && fields[0] != name {
			return false
		}
	}
	return true
}

// userName returns the name of a user, or the number of one without a name.
func userName(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	account, err := user.LookupId(number)
	if err != nil {
		return number
	}
	return account.Username
}

// groupName returns the name of a group, or the number of one without a name.
func groupName(gid uint32) string {
	number := strconv.FormatUint(uint64(gid), 10)
	group, err := user.LookupGroupId(number)
	if err != nil {
		return number
	}
	return group.Name
}

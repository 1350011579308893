package access

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sessionfs/sessioncore/internal/procfs"
)

// Caller is a user who asks for something. A nil Caller is one who needs no check.
type Caller struct {
	UID uint32
	// GIDs are the groups. Unsure says that there may be more: what any group could be denied is then denied.
	GIDs   []uint32
	Unsure bool
}

// OfProcess returns the caller with the file system ids uid and gid that a request of a process came with. The other
// groups are those of the process, if it still is and has these ids.
func OfProcess(uid, gid, pid uint32) *Caller {
	c := &Caller{UID: uid, GIDs: []uint32{gid}, Unsure: true}
	text, err := os.ReadFile(filepath.Join("/proc", strconv.FormatUint(uint64(pid), 10), "status"))
	if err != nil {
		return c
	}
	status := string(text)
	if !isFourth(procfs.Field(status, "Uid"), uid) || !isFourth(procfs.Field(status, "Gid"), gid) {
		return c // another process has the number by now
	}
	return c.join(strings.Fields(procfs.Field(status, "Groups")))
}

// isFourth reports whether the fourth of the ids in a line of status, that for the file system, is id.
func isFourth(ids string, id uint32) bool {
	f := strings.Fields(ids)
	return len(f) == 4 && f[3] == strconv.FormatUint(uint64(id), 10)
}

// OfUser returns the caller that a user is who has logged in.
func OfUser(uid uint32) *Caller {
	c := &Caller{UID: uid, Unsure: true}
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return c
	}
	groups, err := u.GroupIds()
	if err != nil {
		return c
	}
	return c.join(append(groups, u.Gid))
}

// join adds groups; now all are known, if each is a number.
func (c *Caller) join(groups []string) *Caller {
	for _, g := range groups {
		gid, err := strconv.ParseUint(g, 10, 32)
		if err != nil {
			return c
		}
		c.GIDs = append(c.GIDs, uint32(gid))
	}
	c.Unsure = false
	return c
}

func (c *Caller) in(gid uint32) bool { return slices.Contains(c.GIDs, gid) }

type key struct{}

// With returns a context for what is done for a caller.
func With(ctx context.Context, c *Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// From returns the caller for whom something is done, nil if no check is needed. ok is false if With was not called.
func From(ctx context.Context) (c *Caller, ok bool) {
	c, ok = ctx.Value(key{}).(*Caller)
	return c, ok
}

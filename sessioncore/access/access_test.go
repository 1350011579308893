package access

import (
	"context"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
)

// encode is the inverse of parseACL.
func encode(acl []aclEntry) []byte {
	text := binary.LittleEndian.AppendUint32(nil, aclVersion)
	for _, e := range acl {
		text = binary.LittleEndian.AppendUint16(text, e.tag)
		text = binary.LittleEndian.AppendUint16(text, uint16(e.rights))
		text = binary.LittleEndian.AppendUint32(text, e.id)
	}
	return text
}

const undefined = 1<<32 - 1 // id of an entry that has none

// TestMay: who may read a file of user 1 and group 10.
func TestMay(t *testing.T) {
	list := []aclEntry{
		{aclUserObj, 6, undefined},
		{aclUser, 6, 2},
		{aclUser, 0, 3},
		{aclGroupObj, 0, undefined},
		{aclGroup, 4, 20},
		{aclGroup, 2, 21},
		{aclMask, 6, undefined},
		{aclOther, 0, undefined},
	}
	open := []aclEntry{{aclUserObj, 6, undefined}, {aclGroupObj, 4, undefined}, {aclGroup, 0, 20}, {aclMask, 4, undefined}, {aclOther, 4, undefined}}
	user := func(uid uint32, gids ...uint32) *Caller { return &Caller{UID: uid, GIDs: gids} }
	unsure := func(uid uint32, gids ...uint32) *Caller { return &Caller{UID: uid, GIDs: gids, Unsure: true} }
	for _, c := range []struct {
		name   string
		mode   uint32
		acl    []aclEntry
		caller *Caller
		want   Rights
		may    bool
	}{
		{"owner", 0o400, nil, user(1), Read, true},
		{"owner of what others may", 0o066, nil, user(1, 10), Read, false},
		{"group", 0o640, nil, user(2, 9, 10), Read, true},
		{"group that is shut out", 0o604, nil, user(2, 10), Read, false},
		{"another group", 0o640, nil, user(2, 9), Read, false},
		{"others", 0o604, nil, user(2, 9), Read, true},
		{"both rights", 0o604, nil, user(2, 9), Read | Write, false},
		{"groups unknown, others may", 0o604, nil, unsure(2, 9), Read, false},
		{"groups unknown, all may", 0o644, nil, unsure(2, 9), Read, true},
		{"groups unknown but this", 0o640, nil, unsure(2, 10), Read, true},

		{"list: owner", 0o660, list, user(1), Read | Write, true},
		{"list: user", 0o660, list, user(2, 10), Read | Write, true},
		{"list: user who is shut out, though his group may", 0o660, list, user(3, 20), Read, false},
		{"list: the mode's group bits are the mask", 0o660, list, user(4, 10), Read, false},
		{"list: group", 0o660, list, user(4, 10, 20), Read, true},
		{"list: no group has both rights", 0o660, list, user(4, 20, 21), Read | Write, false},
		{"list: others", 0o664, open, user(4, 9), Read, true},
		{"list: the mask takes a right away", 0o664, open, user(4, 10), Write, false},
		{"list: group that is shut out", 0o664, open, user(4, 20), Read, false},
		{"list: groups unknown, one is shut out", 0o664, open, unsure(4, 9), Read, false},
		{"list: groups unknown but one that may", 0o664, open, unsure(4, 10), Read, true},
		{"list: groups unknown, user", 0o660, list, unsure(2), Read, true},
		{"list: without group bits the kernel asks no list", 0o604, list, user(3, 9), Read, true},
	} {
		o := object{mode: c.mode, uid: 1, gid: 10, acl: c.acl}
		require.Equal(t, c.may, o.may(c.caller, c.want), c.name)
		if c.acl != nil {
			parsed, err := parseACL(encode(c.acl))
			require.NoError(t, err)
			require.Equal(t, c.acl, parsed)
		}
	}
}

// TestStrangeLists: what is not understood is an error, and so lets nobody in.
func TestStrangeLists(t *testing.T) {
	good := encode([]aclEntry{{aclUserObj, 6, undefined}})
	_, err := parseACL(good)
	require.NoError(t, err)
	for _, change := range []func(b []byte) []byte{
		func(b []byte) []byte { return nil },
		func(b []byte) []byte { return b[:7] },
		func(b []byte) []byte { b[0] = 3; return b },
		func(b []byte) []byte { b[4] = 0x40; return b },
		func(b []byte) []byte { b[6] = 8; return b },
	} {
		_, err := parseACL(change(append([]byte(nil), good...)))
		require.ErrorIs(t, err, errACL)
	}
}

// TestGroupsOfAProcess: the groups of a process count if it is the one that asks.
func TestGroupsOfAProcess(t *testing.T) {
	pid, uid, gid := uint32(os.Getpid()), uint32(os.Geteuid()), uint32(os.Getegid())
	groups, err := os.Getgroups()
	require.NoError(t, err)
	c := OfProcess(uid, gid, pid)
	require.False(t, c.Unsure)
	for _, g := range groups {
		require.Contains(t, c.GIDs, uint32(g))
	}
	require.Equal(t, &Caller{UID: uid + 1, GIDs: []uint32{gid}, Unsure: true}, OfProcess(uid+1, gid, pid), "of another user")
	require.Equal(t, &Caller{UID: uid, GIDs: []uint32{gid + 1}, Unsure: true}, OfProcess(uid, gid+1, pid), "with another group")
	require.Equal(t, &Caller{UID: uid, GIDs: []uint32{gid}, Unsure: true}, OfProcess(uid, gid, 0), "of a process that cannot be seen")
	require.True(t, OfUser(4_000_000_001).Unsure, "nobody knows him")
	require.False(t, OfUser(0).Unsure)
}

func TestContext(t *testing.T) {
	c := &Caller{UID: 1}
	none, ok := From(t.Context())
	require.False(t, ok)
	found, ok := From(context.WithoutCancel(With(t.Context(), c)))
	require.True(t, ok)
	require.Same(t, c, found)
	for _, ctx := range []context.Context{t.Context(), With(t.Context(), nil)} {
		none, _ = From(ctx)
		require.Nil(t, none)
	}
	_, err := none.May("/nowhere", Read)
	require.NoError(t, err, "without a caller nothing is checked")
	require.NoError(t, none.MayMake("/nowhere"))
	require.NoError(t, none.MayAs("/nowhere", storage.Stat{}, Write))
}

// TestPaths: what is not there, links, and paths that are not clean.
func TestPaths(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	c := &Caller{UID: uint32(os.Geteuid()), Unsure: true}
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink("file", filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink(".", filepath.Join(dir, "here")))
	if _, err := c.May(dir, Search); err != nil {
		t.Skipf("this directory cannot be used: %v", err)
	}
	st, err := os.Stat(file)
	require.NoError(t, err)
	id, err := c.May(file, Read|Write)
	require.NoError(t, err)
	require.Equal(t, st.Sys().(*syscall.Stat_t).Ino, id.Inode)
	_, err = c.May(filepath.Join(dir, "none"), Read)
	require.ErrorIs(t, err, fs.ErrNotExist)
	for _, path := range []string{"link", "here/file", "./file"} {
		_, err = c.May(dir+"/"+path, Read)
		require.Error(t, err, path)
		require.NotErrorIs(t, err, fs.ErrNotExist, path)
	}
	require.NoError(t, c.MayMake(filepath.Join(dir, "new/deep")))
	require.Error(t, c.MayMake(filepath.Join(file, "new")))
	owned := storage.Stat{Mode: 0o600, UID: c.UID}
	require.NoError(t, c.MayAs(filepath.Join(dir, "new/deep"), owned, Read))
	owned.UID++
	require.ErrorIs(t, c.MayAs(filepath.Join(dir, "new/deep"), owned, Read), fs.ErrPermission)
}

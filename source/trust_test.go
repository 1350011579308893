package source

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCheckOwn: others can change what is in a directory if it, one above it or a link on the way is theirs or open to them.
func TestCheckOwn(t *testing.T) {
	info, err := os.Stat(t.TempDir())
	require.NoError(t, err)
	uid := int(info.Sys().(*syscall.Stat_t).Uid)
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	dir := filepath.Join(top, "above/dir")
	link := filepath.Join(top, "link")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.Symlink("above/../above/dir", link))
	alone := func(uint32) bool { return true }
	shared := func(uint32) bool { return false }
	for _, c := range []struct {
		top, above, dir os.FileMode
		group           func(uint32) bool
		want            string // "" for none
	}{
		{0o700, 0o755, 0o755, shared, ""},
		{0o755, 0o711, 0o700, shared, ""},
		{0o700, 0o775, 0o775, alone, ""},
		{0o700, 0o700, 0o775, shared, "may write to " + dir},
		{0o700, 0o775, 0o700, shared, "may write to " + filepath.Dir(dir)},
		{0o775, 0o700, 0o700, shared, "may write to " + top},
		{0o700, 0o700, 0o777, alone, "every user may write to " + dir},
		{0o700, 0o700, 0o702, alone, "every user may write to " + dir},
		{0o700, 0o777, 0o700, alone, "every user may write to " + filepath.Dir(dir)},
		{0o777, 0o700, 0o700, alone, "every user may write to " + top},
		{0o700, 0o777 | os.ModeSticky, 0o700, shared, ""},
		{0o777 | os.ModeSticky, 0o770 | os.ModeSticky, 0o700, shared, ""},
		{0o700, 0o700, 0o777 | os.ModeSticky, alone, "every user may write to " + dir},
	} {
		for path, mode := range map[string]os.FileMode{top: c.top, filepath.Dir(dir): c.above, dir: c.dir} {
			require.NoError(t, os.Chmod(path, mode))
		}
		for _, path := range []string{dir, link, dir + "/", dir + "/.", link + "/../dir", top + "//above/./dir"} {
			err := trusted{uid: uid, isGroup: c.group}.check(path)
			if c.want == "" {
				require.NoError(t, err, path)
			} else {
				require.ErrorContains(t, err, c.want, path)
			}
		}
	}
	require.NoError(t, os.Chmod(top, 0o700))
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o700))
	require.NoError(t, os.Chmod(dir, 0o700))
	if uid != 0 {
		require.ErrorContains(t, trusted{uid: uid + 1, isGroup: alone}.check(dir), " belongs to user ")
	}
	require.NoError(t, trusted{uid: uid + 1, isGroup: alone}.check("/"))
	require.Error(t, trusted{uid: uid, isGroup: alone}.check(dir+"/none"))
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink("link", link))
	require.ErrorIs(t, trusted{uid: uid, isGroup: alone}.check(link), syscall.ELOOP)
}

// TestCheckOwnOfOthers is TestCheckOwn by root, who can give directories and links to other users.
func TestCheckOwnOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	dir := filepath.Join(top, "above/dir")
	link := filepath.Join(top, "above/link")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.Symlink("dir", link))
	me := trusted{
		uid:     1234,
		isGroup: func(gid uint32) bool { return gid == 1234 },
	}
	require.NoError(t, me.check(link), "all is root's")
	for _, path := range []string{dir, filepath.Dir(dir), top} {
		require.NoError(t, os.Lchown(path, 1234, 1234))
		require.NoError(t, me.check(link))
		require.NoError(t, os.Chmod(path, 0o770))
		require.NoError(t, me.check(link))
		require.NoError(t, os.Lchown(path, 4321, 1234))
		require.ErrorContains(t, me.check(dir), path+" belongs to user 4321")
		require.NoError(t, os.Lchown(path, 0, 4321))
		require.ErrorContains(t, me.check(dir), "the group 4321 may write to "+path)
		require.NoError(t, os.Chmod(path, 0o700))
	}
	require.NoError(t, me.check(link))
	require.NoError(t, os.Lchown(link, 4321, 4321))
	require.ErrorContains(t, me.check(link), link+" belongs to user 4321")
	require.NoError(t, me.check(dir))
	require.ErrorContains(t, CheckOwn(link), "belongs to user 4321")
}

// TestPrivateGroup: a group is private if nobody else is a member, by the list of groups or by his own account.
func TestPrivateGroup(t *testing.T) {
	groups := "root:x:0:\nme:x:1000:\nus:x:1001:me,other\nmine:x:1002:me\n"
	users := "root:x:0:0::/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh\nother:x:1001:1002::/:/bin/sh\n"
	for gid, want := range map[string]bool{"1000": true, "1001": false, "1002": false, "2000": true} {
		require.Equal(t, want, isAlone("me", gid, groups, users), gid)
	}
	require.False(t, isPrivateGroup(1<<31), "no group has this number")
}

//go:build linux

package access

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/access/accesstest"
)

// TestAsTheKernelAnswers compares with the kernel's answers, for several users and groups, over trees with all kinds of
// modes, owners and lists. Both must occur often.
func TestAsTheKernelAnswers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to become other users")
	}
	top, err := os.MkdirTemp("", "access-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	require.NoError(t, os.Chmod(top, 0o755))
	random := rand.New(rand.NewPCG(1, 2))
	ids := []uint32{1001, 1002, 1003, 1004}
	one := func() uint32 { return ids[random.IntN(len(ids))] }
	perm := func() Rights { return []Rights{0, 1, 4, 5, 7, 7, 7, 7}[random.IntN(8)] }
	var paths []string
	lists := 0
	var grow func(dir string, depth int)
	grow = func(dir string, depth int) {
		for n := range 4 {
			path := filepath.Join(dir, fmt.Sprint(n))
			if depth == 0 || n == 0 {
				require.NoError(t, os.WriteFile(path, nil, 0o600))
			} else {
				require.NoError(t, os.Mkdir(path, 0o700))
				grow(path, depth-1)
			}
			require.NoError(t, os.Chown(path, int(one()), int(one())))
			require.NoError(t, os.Chmod(path, os.FileMode(perm()<<6|perm()<<3|perm())))
			paths = append(paths, path)
			if random.IntN(2) == 0 {
				continue
			}
			mask := perm()
			mask |= perm() // most lists of real files have a wide one
			acl := []aclEntry{
				{aclUserObj, perm(), undefined},
				{aclUser, perm(), 1001},
				{aclUser, perm(), 1002},
				{aclGroupObj, perm(), undefined},
				{aclGroup, perm(), 1002},
				{aclGroup, perm(), 1003},
				{aclMask, mask, undefined},
				{aclOther, perm(), undefined},
			}
			err := unix.Setxattr(path, posixList, encode(acl), 0)
			if err == unix.ENOTSUP {
				continue // as on a file system without lists
			}
			require.NoError(t, err)
			lists++
		}
	}
	grow(top, 2)
	if lists == 0 {
		t.Logf("%s is on a file system without access control lists: they are not compared", top)
	}
	counts := map[bool]int{}
	for _, uid := range append([]uint32{1005}, ids...) {
		for _, gids := range [][]uint32{{1001}, {1005, 1002}, {1005, 1003, 1004}, {1005}, {1004, 1001, 1002, 1003}} {
			accesstest.As(t, uid, gids, func(tid uint32) {
				known := OfProcess(uid, gids[0], tid)
				unsure := &Caller{UID: uid, GIDs: gids[:1], Unsure: true}
				if known.Unsure {
					t.Errorf("the groups of thread %d are not known", tid)
				}
				for _, path := range paths {
					for want := Search; want <= 7; want++ {
						kernel := accesstest.May(path, uint32(want))
						_, err := known.May(path, want)
						if (err == nil) != kernel {
							t.Errorf("user %d, groups %v, %s of %s: the kernel says %v, we %v", uid, gids, fmt.Sprint(want), path, kernel, err)
						}
						if _, err := unsure.May(path, want); err == nil && !kernel {
							t.Errorf("user %d, groups unknown, %d of %s: more than the kernel", uid, want, path)
						}
						counts[kernel]++
					}
				}
			})
		}
	}
	t.Logf("%d times yes, %d times no; %d paths, %d lists", counts[true], counts[false], len(paths), lists)
	require.Greater(t, counts[true], 1000)
	require.Greater(t, counts[false], 1000)
}

// TestPlain: lists, and directories above that are closed to some, are more than the modes below tell.
func TestPlain(t *testing.T) {
	top, err := os.MkdirTemp("", "access-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	top, err = filepath.EvalSymlinks(top)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(top, 0o755))
	if !Plain(top, top+"/x") {
		t.Skipf("%s is closed to some", top)
	}
	inner := filepath.Join(top, "a/b")
	require.NoError(t, os.MkdirAll(inner, 0o755))
	require.True(t, Plain(inner, inner))
	require.NoError(t, os.Chmod(filepath.Join(top, "a"), 0o750))
	require.False(t, Plain(inner, inner))
	require.True(t, Plain(inner, filepath.Join(top, "a")), "a is shown itself")
	require.False(t, Plain(filepath.Join(inner, "none"), top))
	acl := encode([]aclEntry{{aclUserObj, 7, undefined}, {aclUser, 0, 1}, {aclGroupObj, 7, undefined}, {aclMask, 7, undefined}, {aclOther, 7, undefined}})
	if err := unix.Setxattr(inner, posixList, acl, 0); err == unix.ENOTSUP {
		t.Skip("no access control lists here")
	} else {
		require.NoError(t, err)
	}
	require.False(t, Plain(inner, top))
}

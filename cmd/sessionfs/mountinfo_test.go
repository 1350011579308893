//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"github.com/stretchr/testify/require"
)

const mountTable = `27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
36 27 0:31 / /mnt/a\040b\134c\011d\012e rw,nosuid,nodev shared:12 master:3 - fuse.sessionfs /home/u/my\040agent rw,user_id=1000,group_id=1000,default_permissions
38 37 0:33 / /mnt/x rw - fuse.sessionfs demo rw,group_id=0,user_id=7
39 27 0:34 / /mnt/` + "\u00a0" + ` rw - tmpfs none rw
41 27 0:36 / /mnt/z rw - fuse.sessionfs s rw,user_id=many,group_id=0
`

func TestMountTable(t *testing.T) {
	infos, err := mountinfo.GetMountsFromReader(strings.NewReader(mountTable), nil)
	require.NoError(t, err)
	var got []mountEntry
	for _, i := range infos {
		got = append(got, entryOf(i))
	}
	require.Equal(t, []mountEntry{
		{"/", "ext4", "/dev/vda", -1, -1, 0},
		{"/mnt/a b\\c\td\ne", "fuse.sessionfs", "/home/u/my agent", 1000, 1000, 31},
		{"/mnt/x", "fuse.sessionfs", "demo", 7, 0, 33},
		{"/mnt/\u00a0", "tmpfs", "none", -1, -1, 34},
		{"/mnt/z", "fuse.sessionfs", "s", -1, 0, 36},
	}, got)
}

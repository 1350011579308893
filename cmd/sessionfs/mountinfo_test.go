//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const mountTable = `27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
36 27 0:31 / /mnt/a\040b\134c\011d\012e rw,nosuid,nodev shared:12 master:3 - fuse.sessionfs /home/u/my\040agent rw,user_id=1000,group_id=1000,default_permissions
37 27 0:32 / /mnt/x rw - fuse.sshfs host: rw,user_id=0,group_id=0
38 37 0:33 / /mnt/x rw - fuse.sessionfs demo rw,group_id=0,user_id=7
39 27 0:34 / /mnt/` + "\u00a0" + ` rw - tmpfs none rw
no mount at all
40 27 0:35 / /mnt/y rw - fuse.sessionfs
41 27 0:36 / /mnt/z rw - fuse.sessionfs s rw,user_id=many,group_id=0
`

func TestTopmost(t *testing.T) {
	for _, c := range []struct {
		path string
		want mountEntry
		ok   bool
	}{
		{"/", mountEntry{"/", "ext4", "/dev/vda", -1, -1, 0}, true},
		{"/mnt/a b\\c\td\ne", mountEntry{"/mnt/a b\\c\td\ne", "fuse.sessionfs", "/home/u/my agent", 1000, 1000, 31}, true},
		{"/mnt/x", mountEntry{"/mnt/x", "fuse.sessionfs", "demo", 7, 0, 33}, true},
		{"/mnt/\u00a0", mountEntry{"/mnt/\u00a0", "tmpfs", "none", -1, -1, 34}, true},
		{"/mnt/y", mountEntry{}, false},
		{"/mnt/z", mountEntry{"/mnt/z", "fuse.sessionfs", "s", -1, 0, 36}, true},
		{"/mnt", mountEntry{}, false},
	} {
		got, ok := topmost(mountTable, c.path)
		require.Equal(t, c.ok, ok, c.path)
		require.Equal(t, c.want, got, c.path)
	}
}

func TestUnescapeOctal(t *testing.T) {
	for in, want := range map[string]string{
		"":          "",
		"plain":     "plain",
		`a\040b`:    "a b",
		`\134040`:   `\040`,
		`\`:         `\`,
		`\04`:       `\04`,
		`\999`:      `\999`,
		`\777`:      `\777`, // no byte
		`x\012`:     "x\n",
		"\xff\\040": "\xff ",
	} {
		require.Equal(t, want, unescapeOctal(in), in)
	}
}

func FuzzMountinfo(f *testing.F) {
	f.Add(mountTable, "/mnt/x")
	f.Add("1 2 3 / / rw -  - x", "/")
	f.Fuzz(func(t *testing.T, table, path string) {
		if e, ok := topmost(table, path); ok {
			require.Equal(t, path, e.mountpoint)
		}
	})
}

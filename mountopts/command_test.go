package mountopts

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestParse: command lines of users, of mount(8) and of mount.fuse3 become the options that they mean.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		line string
		want Command
	}{
		{"sessionfs mnt", Command{Options: Options{Mountpoint: "mnt"}}},
		{"sessionfs -f -d src mnt", Command{Options: Options{Source: "src", Mountpoint: "mnt", Foreground: true, Debug: true}}},
		{"sessionfs -o debug src mnt", Command{Options: Options{Source: "src", Mountpoint: "mnt", Debug: true}}},
		{"sessionfs src mnt -fo ro", Command{Options: Options{Source: "src", Mountpoint: "mnt", Foreground: true, ReadOnly: true}}},
		{
			"sessionfs -o ro,sync src -o rw --options=live=allow mnt",
			Command{Options: Options{Source: "src", Mountpoint: "mnt", Sync: true, LiveAllow: true}},
		},
		{"sessionfs -- -src -mnt", Command{Options: Options{Source: "-src", Mountpoint: "-mnt"}}},
		{"sessionfs --demo mnt", Command{Options: Options{Demo: true, Mountpoint: "mnt"}}},
		{"sessionfs sessionfs#src mnt", Command{Options: Options{Source: "sessionfs#src", Mountpoint: "mnt"}}},
		{"sessionfs -uz mnt", Command{Unmount: true, Lazy: true, Options: Options{Mountpoint: "mnt"}}},
		{"sessionfs --unmount --lazy mnt", Command{Unmount: true, Lazy: true, Options: Options{Mountpoint: "mnt"}}},
		{"sessionfs --version", Command{Version: true}},
		{"sessionfs --help -o bogus a b c", Command{Help: true}},

		// As mount(8) and mount.fuse3 call.
		{"sessionfs /src /mnt -o rw,dev,suid", Command{Options: Options{Source: "/src", Mountpoint: "/mnt"}}},
		{"/sbin/mount.sessionfs /src /mnt -o rw", Command{Helper: true, Options: Options{Source: "/src", Mountpoint: "/mnt"}}},
		{
			"mount.sessionfs sessionfs#/src /mnt -n -v -s -t fuse.sessionfs -o rw,bogus",
			Command{Helper: true, Options: Options{Source: "/src", Mountpoint: "/mnt"}},
		},
		{"mount.sessionfs /src /mnt -sfnv", Command{Helper: true, Fake: true, Options: Options{Source: "/src", Mountpoint: "/mnt"}}},
		{
			"mount.sessionfs /src /mnt --foreground",
			Command{Helper: true, Options: Options{Source: "/src", Mountpoint: "/mnt", Foreground: true}},
		},
		{"mount.sessionfs /src /mnt -t fuse", Command{Helper: true, Options: Options{Source: "/src", Mountpoint: "/mnt"}}},
	} {
		got, err := Parse(strings.Split(c.line, " "))
		require.NoError(t, err, c.line)
		require.Equal(t, c.want, got, c.line)
	}
}

// TestParseErrors: a wrong command line is refused, with the reason.
func TestParseErrors(t *testing.T) {
	for line, say := range map[string]string{
		"":                                    "no arguments",
		"sessionfs":                           "MOUNTPOINT is missing",
		"sessionfs a b c":                     "3 arguments",
		"sessionfs --demo a b":                "MOUNTPOINT alone",
		"sessionfs --demo":                    "MOUNTPOINT is missing",
		"sessionfs -z mnt":                    "-u",
		"sessionfs -u a b":                    "exactly one MOUNTPOINT",
		"sessionfs -o bogus src mnt":          "bogus",
		"sessionfs -s -o bogus src mnt":       "bogus", // -s is for mount(8)
		"sessionfs src /dev/fd/3":             "drop_privileges",
		"sessionfs -N ns src mnt":             "-N",
		"sessionfs -t ext4 src mnt":           "ext4",
		"mount.sessionfs /mnt":                "SOURCE and MOUNTPOINT",
		"mount.sessionfs sessionfs# /mnt":     "SOURCE is not given",
		"mount.sessionfs /src /mnt -t fuse.x": "fuse.x",
	} {
		var args []string
		if line != "" {
			args = strings.Split(line, " ")
		}
		_, err := Parse(args)
		require.ErrorContains(t, err, say, line)
	}
	for _, args := range [][]string{{"sessionfs", "", "mnt"}, {"sessionfs", "src", ""}, {"sessionfs", "-u", ""}} {
		_, err := Parse(args)
		require.Error(t, err)
	}
}

// TestHelperKnownFromName: the command of a refused line is known to be a helper too.
func TestHelperKnownFromName(t *testing.T) {
	c, err := Parse([]string{"/x/mount.sessionfs", "-o", "bogus", "a", "b"})
	require.Error(t, err)
	require.True(t, c.Helper, "the exit status depends on it")
}

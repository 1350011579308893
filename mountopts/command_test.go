package mountopts

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// environment makes a getenv.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if value, ok := strings.CutPrefix(p, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func TestParse(t *testing.T) {
	home := environment("HOME=/home/u")
	for _, c := range []struct {
		line   string
		getenv func(string) string
		want   Command
	}{
		{"sessionfs mnt", home, Command{DefaultSource: true, Options: Options{Source: "/home/u/.omp/agent", Mountpoint: "mnt"}}},
		{
			"sessionfs mnt", environment("HOME=/home/u", "PI_CODING_AGENT_DIR=/data/agent"),
			Command{DefaultSource: true, Options: Options{Source: "/data/agent", Mountpoint: "mnt"}},
		},
		{"sessionfs src mnt", nil, Command{Options: Options{Source: "src", Mountpoint: "mnt"}}},
		{"sessionfs -f -d src mnt", nil, Command{Options: Options{Source: "src", Mountpoint: "mnt", Foreground: true, Debug: true}}},
		{"sessionfs --log-file l -o log-file=x src mnt", nil, Command{Options: Options{Source: "src", Mountpoint: "mnt", LogFile: "l"}}},
		{"sessionfs -o debug src mnt", nil, Command{Options: Options{Source: "src", Mountpoint: "mnt", Debug: true}}},
		{"sessionfs src mnt -fo ro", nil, Command{Options: Options{Source: "src", Mountpoint: "mnt", Foreground: true, ReadOnly: true}}},
		{
			"sessionfs -o ro,sync src -o rw --options=live=allow mnt", nil,
			Command{Options: Options{Source: "src", Mountpoint: "mnt", Sync: true, LiveAllow: true}},
		},
		{"sessionfs -- -src -mnt", nil, Command{Options: Options{Source: "-src", Mountpoint: "-mnt"}}},
		{"sessionfs --demo mnt", nil, Command{Options: Options{Demo: true, Mountpoint: "mnt"}}},
		{"sessionfs sessionfs#src mnt", nil, Command{Options: Options{Source: "sessionfs#src", Mountpoint: "mnt"}}},
		{"sessionfs -u mnt", nil, Command{Action: Unmount, Options: Options{Mountpoint: "mnt"}}},
		{"sessionfs -uz mnt", nil, Command{Action: Unmount, Lazy: true, Options: Options{Mountpoint: "mnt"}}},
		{"sessionfs --unmount --lazy mnt", nil, Command{Action: Unmount, Lazy: true, Options: Options{Mountpoint: "mnt"}}},
		{"sessionfs -h", nil, Command{Action: Help}},
		{"sessionfs --version", nil, Command{Action: Version}},
		{"sessionfs --help -o bogus a b c", nil, Command{Action: Help}},
		{"sessionfs help", nil, Command{Action: Help}},
		{"sessionfs help mount", nil, Command{Action: HelpMount}},
		{"sessionfs help mnt", nil, Command{Action: Help}},
		{"sessionfs version", nil, Command{Action: Version}},
		{"sessionfs ./version mnt", nil, Command{Options: Options{Source: "./version", Mountpoint: "mnt"}}},
		{"sessionfs src help", nil, Command{Options: Options{Source: "src", Mountpoint: "help"}}},
		{"sessionfs --demo help/", nil, Command{Options: Options{Demo: true, Mountpoint: "help/"}}},
		{"sessionfs -- help mnt", nil, Command{Options: Options{Source: "help", Mountpoint: "mnt"}}},
		{"sessionfs -u help", nil, Command{Action: Unmount, Options: Options{Mountpoint: "help"}}},
		{"mount.sessionfs help /mnt", nil, Command{Helper: true, Options: Options{Source: "help", Mountpoint: "/mnt"}}},

		// As mount(8) and mount.fuse3 call.
		{"sessionfs /src /mnt -o rw,dev,suid", nil, Command{Options: Options{Source: "/src", Mountpoint: "/mnt"}}},
		{"/sbin/mount.sessionfs /src /mnt -o rw", nil, Command{Helper: true, Options: Options{Source: "/src", Mountpoint: "/mnt"}}},
		{"/sbin/mount.fuse.sessionfs /src /mnt", nil, Command{Helper: true, Options: Options{Source: "/src", Mountpoint: "/mnt"}}},
		{
			"mount.sessionfs sessionfs#/src /mnt -n -v -s -t fuse.sessionfs -o rw,bogus", nil,
			Command{Helper: true, Options: Options{Source: "/src", Mountpoint: "/mnt"}},
		},
		{"mount.sessionfs /src /mnt -sfnv", nil, Command{Helper: true, Fake: true, Options: Options{Source: "/src", Mountpoint: "/mnt"}}},
		{
			"mount.sessionfs /src /mnt --foreground", nil,
			Command{Helper: true, Options: Options{Source: "/src", Mountpoint: "/mnt", Foreground: true}},
		},
		{"mount.sessionfs /src /mnt -t sessionfs", nil, Command{Helper: true, Options: Options{Source: "/src", Mountpoint: "/mnt"}}},
		{"mount.sessionfs /src /mnt -t fuse", nil, Command{Helper: true, Options: Options{Source: "/src", Mountpoint: "/mnt"}}},
	} {
		got, err := Parse(strings.Split(c.line, " "), orEmpty(c.getenv))
		require.NoError(t, err, c.line)
		require.Equal(t, c.want, got, c.line)
	}
}

func orEmpty(getenv func(string) string) func(string) string {
	if getenv == nil {
		return environment()
	}
	return getenv
}

func TestParseErrors(t *testing.T) {
	for line, say := range map[string]string{
		"":                                    "no arguments",
		"sessionfs":                           "MOUNTPOINT is missing",
		"sessionfs mnt":                       "neither PI_CODING_AGENT_DIR nor HOME",
		"sessionfs a b c":                     "3 arguments",
		"sessionfs --demo a b":                "MOUNTPOINT alone",
		"sessionfs --demo":                    "MOUNTPOINT is missing",
		"sessionfs -z mnt":                    "-u",
		"sessionfs -u":                        "exactly one MOUNTPOINT",
		"sessionfs -u a b":                    "exactly one MOUNTPOINT",
		"sessionfs -x mnt":                    "-x",
		"sessionfs --bogus mnt":               "--bogus",
		"sessionfs src mnt -o":                "-o",
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
		_, err := Parse(args, environment())
		require.ErrorContains(t, err, say, line)
	}
	for _, args := range [][]string{{"sessionfs", "", "mnt"}, {"sessionfs", "src", ""}, {"sessionfs", "-u", ""}} {
		_, err := Parse(args, environment())
		require.Error(t, err)
	}
}

func TestHelperKnownFromName(t *testing.T) {
	c, err := Parse([]string{"/x/mount.sessionfs", "-o", "bogus", "a", "b"}, environment())
	require.Error(t, err)
	require.True(t, c.Helper, "the exit status depends on it")
}

// The help is for terminals of 80 columns.
func TestUsageWidth(t *testing.T) {
	for line := range strings.Lines(Summary() + Usage()) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 80, line)
	}
}

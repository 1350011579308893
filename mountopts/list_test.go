//go:build linux

package mountopts

import (
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestParseList: lists of options become the options that they mean, the last one where they contradict each other.
func TestParseList(t *testing.T) {
	for _, c := range []struct {
		list string
		want Options
	}{
		{"", Options{}},
		{"rw", Options{}},
		{"defaults", Options{}},
		{"ro", Options{ReadOnly: true}},
		{"ro,rw", Options{}},
		{"sync", Options{Sync: true}},
		{"live=allow", Options{LiveAllow: true}},
		{"leaf=memory", Options{LeafMemory: true}},
		{"context=stored", Options{}},
		{"context-blobs=ref", Options{ContextBlobsRef: true}},
		{"allow_root,debug", Options{AllowRoot: true, Debug: true}},
		{"idle=10m", Options{Idle: 10 * time.Minute}},
		{"idle=1h,idle=2s", Options{Idle: 2 * time.Second}},
		{"log-file=/a/b c", Options{LogFile: "/a/b c"}},
		{"debug,loglevel=error", Options{LogLevel: slog.LevelError}},
		{"loglevel=error,loglevel=debug", Options{LogLevel: slog.LevelError, Debug: true}},
		{"memory=150m", Options{Memory: 150 << 20}},
		{"blobs=/var/blobs", Options{Blobs: "/var/blobs"}},
		{"blobs=./postgres", Options{Blobs: "./postgres"}},
		{"memory=1G,memory=65536K", Options{Memory: 64 << 20}},
		{"memory=1024g", Options{Memory: 1 << 40}},
		{"noexec,noatime,dirsync", Options{NoExec: true}},
		{"fsname=agent,subtype=sessionfs", Options{FSName: "agent"}},
		{`fsname=a\,b\\c\d`, Options{FSName: `a,b\c\d`}},
		// What mount.fuse3 makes of `defaults`, and libmount of `user`.
		{"rw,dev,suid", Options{}},
		{"rw,nosuid,nodev,noexec,relatime,user=u", Options{NoExec: true}},
		{"rw,noauto,user,users,nofail,_netdev,x-systemd.automount,x-systemd.idle-timeout=60,x-gvfs-show,X-mount.mkdir,comment=any thing,comment", Options{}},
		{"nonempty", Options{NonEmpty: true}},
		{"auto_unmount,entry_timeout=1.5,attr_timeout=0,kernel_cache,max_read=131072,max_read", Options{}},
		{"atime,relatime,strictatime,nodiratime,lazytime,default_permissions,owner,group,silent", Options{}},
	} {
		var o Options
		require.NoError(t, parseList(&o, c.list, false), c.list)
		require.Equal(t, c.want, o, c.list)
	}
}

// TestParseListErrors: unknown options, wrong values, and options that are not supported are refused, with a reason.
func TestParseListErrors(t *testing.T) {
	for list, say := range map[string][]string{
		"bogus":            {`"bogus"`},
		"ro,Bogus=1":       {`"Bogus"`},
		"=":                {`""`},
		"live=yes":         {"refuse or allow"},
		"leaf=disk":        {"durable or memory"},
		"context-blobs=no": {"base64 or ref"},
		"blobs=postgres":   {"blobs=postgres", "blobs=DIR", "./postgres", "team.md"},
		"context=sent":     {"context=sent", "as they are stored", "leave it out"},
		"idle":             {"idle=TIME"},
		"idle=1s":          {"2s"},
		"idle=-10m":        {"2s"},
		"log-file=":        {"log-file=FILE"},
		"loglevel=all":     {"error, warn"},
		"memory":           {"memory=SIZE"},
		"memory=63m":       {"64m"},
		"memory=0x100m":    {"64m"},
		"memory=1.5g":      {"64m"},
		"memory=1025g":     {"1024g"},
		"ro=1":             {"takes no value", `"1"`},
		"fsname=":          {"fsname=NAME"},
		"fsname=a\nb":      {"line break"},
		"subtype=other":    {FSType},
		"uid=1000":         {"uid", "owner"},
		"allow_other":      {"each user", "allow_root"},
		"remount,ro":       {"sessionfs -u"},
	} {
		err := parseList(&Options{}, list, false)
		require.Error(t, err, list)
		for _, s := range say {
			require.Contains(t, err.Error(), s)
		}
	}
	// mount -s: unknown options are passed over, wrong values are not.
	o := Options{}
	require.NoError(t, parseList(&o, "bogus=1,ro", true))
	require.Equal(t, Options{ReadOnly: true}, o)
	require.Error(t, parseList(&o, "live=maybe", true))
}

// TestOptionTable: the help and the manual describe each option once, and none is both known and refused.
func TestOptionTable(t *testing.T) {
	text, err := os.ReadFile("../docs/sessionfs.1.md")
	require.NoError(t, err)
	described := func(heading string) (names []string) {
		_, section, _ := strings.Cut(string(text), "\n## "+heading+"\n")
		section, _, _ = strings.Cut(section, "\n#")
		for _, term := range regexp.MustCompile(`(?m)^(.*)\n:`).FindAllString(section, -1) {
			for _, word := range regexp.MustCompile(`\*\*([^*=]+)[^*]*\*\*`).FindAllStringSubmatch(term, -1) {
				if !slices.Contains(names, word[1]) { // with each of its values
					names = append(names, word[1])
				}
			}
		}
		return names
	}
	var effect, reasons []string
	for _, k := range options(&Options{}) {
		effect = append(effect, k.name)
		require.Regexp(t, `\n  `+k.name+`[ =,\n]`, Usage(""))
	}
	for name := range refused {
		name, value, _ := strings.Cut(name, "=")
		require.Equal(t, value == "", !slices.Contains(effect, name) && !slices.Contains(accepted, name), name)
		reasons = append(reasons, name)
	}
	require.ElementsMatch(t, effect, described("With an effect"))
	require.ElementsMatch(t, accepted, described("Without an effect"))
	require.ElementsMatch(t, reasons, described("Refused"))
	require.Empty(t, slices.DeleteFunc(slices.Clone(effect), func(name string) bool { return !slices.Contains(accepted, name) }))
}

func FuzzParseList(f *testing.F) {
	for _, k := range options(&Options{}) {
		f.Add(k.name)
		f.Add(k.name + "=" + k.value)
	}
	f.Add(`fsname=a\,b\\,ro,x-y=z`)
	f.Fuzz(func(t *testing.T, list string) {
		var o Options
		if parseList(&o, list, false) != nil {
			return
		}
		// The last word wins, so the same list again changes nothing; -s understands no less.
		again := o
		require.NoError(t, parseList(&again, list, true))
		require.Equal(t, o, again)
		require.NotContains(t, o.FSName, "\n")
		// Escaped as libfuse does, a name survives.
		if o.FSName != "" {
			escaped := strings.NewReplacer(`\`, `\\`, `,`, `\,`).Replace(o.FSName)
			var named Options
			require.NoError(t, parseList(&named, "fsname="+escaped, false))
			require.Equal(t, o.FSName, named.FSName)
		}
	})
}

//go:build linux

package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// libraryWords are words of cobra, pflag, strconv and other packages, which no message has.
var libraryWords = regexp.MustCompile(`strconv|ParseInt|ParseUint|ParseBool|invalid syntax|value out of range|arg\(s\)|accepts |requires at least|` +
	`unknown (shorthand )?flag|unknown command|flag needs|bad flag|invalid argument|any flags in the group|required flag|\bflags?\b|` +
	`pflag|cobra|%!|error parsing|toml:|JSON input|looking for beginning|missing port|dial tcp`)

// commandLines returns wrong command lines of a command, and right ones that find nothing.
func commandLines(c *cobra.Command) (lines [][]string) {
	name := strings.Fields(c.CommandPath())[1:]
	add := func(words ...string) { lines = append(lines, slices.Concat(name, words)) }
	add()
	for _, words := range []string{
		"a", "a b", "a b c", "--nosuch", "--nosuch=x a", "-Q", "-Qc a", "--=x", "--=", "--help=x", "-", "a --", "-- -x", "--hel",
	} {
		add(strings.Fields(words)...)
	}
	add("")
	var all []string
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		option := "--" + f.Name
		all = append(all, option)
		add(option)
		add(option + "=")
		for _, value := range []string{"x", "-1", "1.5", "99999999999999999999", "yes"} {
			if f.Value.Type() != "string" && f.Value.Type() != "stringArray" {
				add(option+"="+value, "a")
			}
		}
		if f.Shorthand != "" {
			add("-" + f.Shorthand)
			add("-"+f.Shorthand+"x", "a")
		}
	})
	for i, one := range all {
		for _, other := range all[i+1:] {
			add(one, other, "a")
			add(one+"=1", other+"=1", "a")
		}
	}
	return lines
}

// TestRefusalsInOwnWords: every refusal of a command line is in the words of this program.
func TestRefusalsInOwnWords(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("PATH", dir)
	for _, variable := range []string{"PI_CODING_AGENT_DIR", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(variable, "")
	}
	var lines [][]string
	for _, c := range newRoot(streams{}, "").Commands() {
		if c.DisableFlagParsing {
			continue // it is another program
		}
		lines = append(lines, commandLines(c)...)
		for _, below := range c.Commands() {
			lines = append(lines, commandLines(below)...)
		}
	}
	mounting := []string{
		"--nosuch m", "-Q m", "--=x m", "--demo=x m", "--log-file", "-o", "-u", "-u a b", "-z m", "--all --demo m", "--demo a b", "a b c",
		"-o idle=x m", "-o idle=1 m", "-o memory=x m", "-o memory=99999999999999999999 m", "-o loglevel=x m", "-o nosuch m", "-o ro=x m",
		"-o live=x m", "-o prices m", "-t ext4 a m", "-o fsname= a m", "http://x m", "postgres://%zz m", "postgres://h:x/y m",
		"nosuchcommand", "restore", "serach x y",
	}
	for _, line := range mounting {
		lines = append(lines, strings.Fields(line))
	}
	require.Greater(t, len(lines), 700)
	for _, line := range lines {
		if slices.Contains(line, "--debug") || slices.Contains(line, "--debug=1") { // the log of a mount
			continue
		}
		r := typedLine("", line...)
		require.NotRegexp(t, libraryWords, r.stderr, "%q", line)
		if r.code != 0 && r.stderr != "" {
			require.Regexp(t, `(?m)^sessionfs: `, r.stderr, "%q", line)
		}
	}
}

// TestJobs: a word stands for one purpose alone, is no command, and the purpose names a command that is there.
func TestJobs(t *testing.T) {
	seen := map[string]bool{}
	for _, j := range jobs {
		words := strings.Fields(j.how)
		command := words[1]
		isOption := strings.ContainsAny(command[:1], "-[")
		if command != "completion" && !isOption { // which cobra has
			require.Contains(t, commands, command, j.how)
		}
		for _, word := range strings.Fields(j.words) {
			require.False(t, seen[word], word)
			require.NotContains(t, commands, word)
			seen[word] = true
		}
	}
	require.Empty(t, jobHint("nothing"))
}

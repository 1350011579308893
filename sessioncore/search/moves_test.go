package search

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/renames"
)

// TestEarlier: the earlier paths of a file by a command in /p. Behind a path stands the directory that was moved, if the
// file was below it.
func TestEarlier(t *testing.T) {
	for _, c := range []struct{ file, command, want string }{
		{"/p/b.go", "mv a.go b.go", "/p/a.go (/p/b.go)"},
		{"/p/lib/a.go", "mv a.go lib/", "/p/a.go; /p/a.go/a.go (/p/lib)"},
		{"/p/lib/a.go", "mv a.go c.go lib", "/p/a.go"},
		{"/p/new/x/a.go", "mv old new", "/p/old/x/a.go (/p/new)"},
		{"/q/x/a.go", "mv /p /q", "/p/x/a.go (/q)"},
		{"/home/u/b.go", "mv ~/a.go ~/b.go", "/home/u/a.go (/home/u/b.go)"},
		{"/p/newer/a.go", "mv old new", ""},
		{"/p/a.go", "mv a.go b.go", ""},
		{"/p/a.go", "mv a.go .", ""},
	} {
		touched, err := NewTouched(c.file)
		require.NoError(t, err)
		touched.home = "/home/u"
		header := rawjson.Value(`{"cwd":"/p"}`)
		var got []string
		shell := message.ShellCall{Command: c.command}
		for _, paths := range touched.Moves().Earlier(header, shell, renames.WorkingDirectory{}) {
			for _, p := range paths {
				got = append(got, strings.TrimSuffix(fmt.Sprintf("%s (%s)", p.Path, p.Above), " ()"))
			}
		}
		require.Equal(t, c.want, strings.Join(got, "; "), c.command)
	}
	windows, err := NewTouched(`C:\a.go`)
	require.NoError(t, err)
	require.Nil(t, windows.Moves())
}

// TestMovesInBytes: commands in the bytes of agents' files, escaped once or more, and what only looks like one.
func TestMovesInBytes(t *testing.T) {
	touched, err := NewTouched("/p/lib/b c.go")
	require.NoError(t, err)
	moves := touched.Moves()
	for text, want := range map[string]bool{
		`{"command":"mv a 'lib/b c.go'"}`:                             true,
		`{"command":"ls\nmv a \"lib/b c.go\""}`:                       true,
		`{"command":"git mv old lib && make"}`:                        true,
		`"arguments":"{\"cmd\":\"mv a 'lib/b c.go'\",\"workdir\":1}"`: true,
		`"arguments":"{\"cmd\":\"mv a \\\"lib/b c.go\\\"\"}"`:         true,
		`"arguments":"{\"command\":[\"mv\",\"a\",\"lib\"]}"`:          true,
		`{"command":"\u006dv a lib"}`:                                 true,
		`{"command":"mv a other && ls lib"}`:                          false,
		`{"command":"rmv a lib"}`:                                     false,
		`{"text":"the mv command moves files, such as libraries"}`:    false,
		`{"command":"mv a other","path":"lib"}`:                       false,
		`{"command":"mvn lib"}`:                                       false,
	} {
		n := moves.inRaw("", nil)
		found, _ := n.scanBuffer([]byte(text), 0, 0, int64(len(text)), nil)
		require.Equal(t, want, len(found) > 0, text)
	}
}

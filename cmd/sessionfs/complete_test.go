//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompletions(t *testing.T) {
	s := commandStore(t)
	complete := func(words ...string) string {
		var out, stderr bytes.Buffer
		require.Zero(t, run(append([]string{"sessionfs"}, words...), streams{nil, &out, &stderr}), "%q: %s", words, &stderr)
		return out.String()
	}
	for typed, want := range map[string]string{
		"rec": "recent/\n:38\n", "by-id/019d42": "by-id/019d42a6-5232-7813-8906-b2eb1701614a/\n:38\n",
		"by-id/019d3d9/tr": "by-id/019d3d9/transcript.md\nby-id/019d3d9/tree/\n:38\n",
		"by-id/019d3d9/ti": "by-id/019d3d9/title\n:36\n", "by-id/019d3d9/le": "by-id/019d3d9/leaf\n:36\n", "none/": ":0\n",
	} {
		require.Equal(t, want, complete("__complete", "cat", "-s", s.source, typed), typed)
	}
	for _, command := range []string{"ls", "tar", "write", "export", "bundle", "show", "log", "diff"} {
		require.Equal(t, "by-id/019d3d9/title\n:36\n", complete("__complete", command, "--source", s.source, "by-id/019d3d9/ti"), command)
	}
	for line, want := range map[string]string{
		"mn": ":16\n", "ca": "cat\tPrint files of what a mount would show\n:4\n", "agent s": ":16\n",
		"-o live": "live=refuse\nlive=allow\n:6\n", "-o ro,mem": "ro,memory=\n:6\n", "cat -o redac": "redact\nredact-rules=\n:6\n",
		"cat -s ": ":16\n", "import x": ":0\n", "bundle --red": "--redact\tmask keys, tokens and passwords that are known, as -o redact does\n:4\n",
	} {
		require.Equal(t, want, complete(append([]string{"__complete"}, strings.Split(line, " ")...)...), line)
	}
	tide := "019d42a6-5232-7813-8906-b2eb1701614a"
	for words, want := range map[string]string{
		"export 019d4": tide + "\tTide sheets as a calendar\n:36\n", "bundle x": ":0\n", "write 019d4": tide + "/\tTide sheets as a calendar\n:36\n",
		"write 019d42a/": "append\ncwd\nfork\nlabels\nleaf\ntitle\n:36\n", "write n": "new-session\n:36\n", "write la": ":0\n", "cat ./": ":0\n",
	} {
		line := strings.SplitN(words, " ", 2)
		require.Equal(t, want, strings.ReplaceAll(complete("__complete", line[0], "-s", s.source, line[1]), "019d42a/", ""), words)
	}
	all := complete("__complete", "")
	require.Contains(t, all, "export\tWrite a session")
	require.Regexp(t, `(?m)^help\t[^$]*^version\t`, all)
	require.NotContains(t, all, "umount")
	require.NotContains(t, all, "no-")
	require.Contains(t, complete("__complete", "help", ""), "\nmount\tall options of a mount\n")
	for _, shell := range []string{"bash", "zsh", "fish"} {
		require.Greater(t, strings.Count(complete("completion", shell), "sessionfs"), 10)
	}
	requireStatus(t, exitSource, s.here("ls", "-s", "/nowhere"))
}

// What a user of fish, and one of bash with the package bash-completion, gets for a tab.
func TestCompletionsOfShells(t *testing.T) {
	s := commandStore(t)
	for shell, script := range map[string]string{
		"fish": `sessionfs completion fish | source
			complete -C "sessionfs cat -s $argv[1] recent/03"
			complete -C "sessionfs che"
			complete -C "sessionfs cat -s $argv[1] recent/03-Tide\ sheets\ as\ a\ calendar\ \(fork\ of\ 04\)/hea"
			complete -C "sessionfs cat -s $argv[1] 'recent/03-Tide sheets as a calendar (fork of 04)/hea"
			complete -C "sessionfs cat 'recent/03 a' -s $argv[1] by-id/019d3d9/ti"
			complete -C "sessionfs cat (touch ran) -s $argv[1] by-id/019d3d9/ti"
			test -e ran; and echo ran`,
		"zsh": `autoload -U compinit && compinit -D && source <(sessionfs completion zsh) && print $_comps[sessionfs]`,
	} {
		if _, err := exec.LookPath(shell); err != nil {
			skip(t, err.Error())
		}
		want := "recent/03-Tide sheets as a calendar (fork of 04)/\ncheck\tTell what is broken in the sessions, and what to do about it\n" +
			strings.Repeat("recent/03-Tide sheets as a calendar (fork of 04)/header.json\n", 2) + strings.Repeat("by-id/019d3d9/title\n", 2)
		args := []string{"--no-config", "-c", script, s.source}
		if shell == "zsh" {
			want, args = "_sessionfs\n", []string{"-f", "-c", script}
		}
		r := s.exec(shell, args...)
		require.Equal(t, want, r.stdout, "%s: %s", shell, r.stderr)
	}
	if _, err := os.Stat(bashCompletion); err != nil {
		t.Skip(err)
	}
	// What is typed, with a tab behind each begun word. bash asks the program at each.
	typed := ". " + bashCompletion + "; . <(sessionfs completion bash); bind 'set enable-bracketed-paste off'; stty -echo\n" +
		"sessionfs ca\t-s " + s.source + " by-id/019d3d9/ti\t\n" +
		"sessionfs ls -s " + s.source + " recent/03\thea\t\n" +
		"exit\n"
	terminal := s.command("script", "-q", "-e", "-c", "bash --norc --noprofile -i", "/dev/null")
	terminal.Stdin = strings.NewReader(typed)
	terminal.Env = append(terminal.Env, "TERM=dumb", "PS1=")
	r := s.finish(terminal).ok(t)
	require.Contains(t, r.stdout, "An hour late, a hand too high\r\n")
	require.Contains(t, r.stdout, "recent/03-Tide sheets as a calendar (fork of 04)/header.json\r\n")
}

// bashCompletion is where Debian has what the completions of bash need.
const bashCompletion = "/usr/share/bash-completion/bash_completion"

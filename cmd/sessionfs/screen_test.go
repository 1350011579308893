//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/view"
)

// TestPagerWords: PAGER names the pager, and TERM a terminal that can have one; without PAGER it is less, if that is
// installed.
func TestPagerWords(t *testing.T) {
	for env, want := range map[string]string{
		"":              "/usr/bin/less -FRX",
		"PAGER=cat":     "",
		"PAGER=":        "",
		"TERM=dumb":     "",
		"TERM=":         "",
		"PAGER=most -w": "sh -c most -w",
	} {
		lookup := func(name string) (string, bool) {
			value, isSet := strings.CutPrefix(env, name+"=")
			if name == "TERM" && !isSet {
				return "xterm", true
			}
			return value, isSet
		}
		installed := func(name string) (string, error) { return "/usr/bin/" + name, nil }
		words := pagerWords(lookup, installed)
		require.Equal(t, want, strings.Join(words, " "), env)
	}
	none := func(string) (string, error) { return "", errors.New("not installed") }
	require.Nil(t, pagerWords(func(string) (string, bool) { return "", false }, none))
}

// TestAtLine: a pager that is known to take it begins at a line; others begin at the first one.
func TestAtLine(t *testing.T) {
	for _, c := range [][2][]string{
		{{"/bin/less", "-FRX"}, {"/bin/less", "-FRX", "+42"}},
		{{"sh", "-c", "less -R"}, {"sh", "-c", "less -R +42"}},
		{{"sh", "-c", "/opt/less"}, {"sh", "-c", "/opt/less +42"}},
		{{"sh", "-c", "most"}, {"sh", "-c", "most"}},
		{nil, nil},
	} {
		require.Equal(t, c[1], atLine(c[0], 40))
	}
	require.Equal(t, []string{"less"}, atLine([]string{"less"}, 0))
}

// openTerminal returns a terminal of 80 columns, and its other end, which has the output.
func openTerminal(t *testing.T) (terminal, output *os.File) {
	t.Helper()
	output, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { output.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(output.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(output.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { terminal.Close() })
	require.NoError(t, unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	return terminal, output
}

// readTo reads up to an end.
func readTo(t *testing.T, in io.Reader, end string) (text string) {
	t.Helper()
	part := make([]byte, 4096)
	for !strings.HasSuffix(text, end) {
		n, err := in.Read(part)
		require.NoError(t, err)
		text += string(part[:n])
	}
	return text
}

// TestProgress: work that takes longer than a second is shown on a terminal, and taken away at its end; other work, and
// where there is no terminal, nothing is.
func TestProgress(t *testing.T) {
	terminal, output := openTerminal(t)
	run := func(out io.Writer, takes time.Duration) {
		c := &console{streams: streams{err: out}}
		err := c.withProgress(t.Context(), func(ctx context.Context) error {
			storage.Progress(ctx, 3, 6)
			time.Sleep(takes)
			return io.ErrUnexpectedEOF
		})
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	var file strings.Builder
	synctest.Test(t, func(*testing.T) { // its clock waits for a busy machine
		run(&file, progressAfter+2*progressEach)
		run(terminal, 0)
		run(terminal, progressAfter+2*progressEach)
	})
	require.Empty(t, file.String())
	_, err := terminal.WriteString("end")
	require.NoError(t, err)
	require.Regexp(t, `^(\r\x1b\[K\[#{20} {20}\] 3 of 6)+\r\x1b\[Kend$`, readTo(t, output, "end"))
	require.Equal(t, "7 done", progressText(7, 0))
}

// TestPaged: what is read in a pager goes through it whole; who leaves it early has read enough; nothing to read starts none.
func TestPaged(t *testing.T) {
	dir := t.TempDir()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	defer terminal.Close()
	t.Setenv("TERM", "xterm")
	for pager, want := range map[string]string{
		"cat > " + dir + "/read":           "",
		"head -c 1 > " + dir + "/read":     "",
		"nosuch-pager 2> " + dir + "/read": "status 127",
		"less ( 2> " + dir + "/read":       "ended with status",
	} {
		t.Setenv("PAGER", pager)
		c := &console{streams: streams{out: terminal, err: io.Discard}, name: "show"}
		for _, lines := range []int{0, 100_000} {
			err := c.paged(func(out *view.Screen) error {
				require.True(t, out.People)
				for range lines {
					if _, err := io.WriteString(out, "a line\n"); err != nil {
						return err
					}
				}
				return nil
			})
			if want != "" && lines > 0 {
				require.ErrorContains(t, err, want)
				continue
			}
			require.NoError(t, err, pager)
			read, err := os.ReadFile(dir + "/read")
			require.Equal(t, lines == 0, os.IsNotExist(err), pager)
			if lines > 0 && strings.HasPrefix(pager, "cat") {
				require.Equal(t, strings.Repeat("a line\n", lines), string(read))
			}
		}
		require.NoError(t, os.RemoveAll(dir+"/read"))
	}
	t.Setenv("PAGER", "")
	failed := errors.New("failed")
	c := &console{streams: streams{out: io.Discard}}
	require.ErrorIs(t, c.paged(func(_ *view.Screen) error { return failed }), failed)
}

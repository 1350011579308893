//go:build linux

package main

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestPagerWords(t *testing.T) {
	for env, want := range map[string]string{
		"": "/usr/bin/less -FRX", "PAGER=cat": "", "PAGER=": "", "TERM=dumb": "", "TERM=": "", "PAGER=most -w": "sh -c most -w",
	} {
		lookup := func(name string) (string, bool) {
			if value, ok := strings.CutPrefix(env, name+"="); ok || name != "TERM" {
				return value, ok
			}
			return "xterm", true
		}
		got := pagerWords(lookup, func(name string) (string, error) { return "/usr/bin/" + name, nil })
		require.Equal(t, want, strings.Join(got, " "), env)
	}
	none := func(string) (string, error) { return "", errors.New("not installed") }
	require.Nil(t, pagerWords(func(string) (string, bool) { return "", false }, none))
}

// What is read in a pager goes through it whole; who leaves it early has read enough; nothing to read starts none.
func TestPaged(t *testing.T) {
	dir := t.TempDir()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	defer terminal.Close()
	t.Setenv("TERM", "xterm")
	for pager, want := range map[string]string{
		"cat > " + dir + "/read": "", "head -c 1 > " + dir + "/read": "", "nosuch-pager 2> " + dir + "/read": "status 127",
		"less ( 2> " + dir + "/read": "ended with status",
	} {
		t.Setenv("PAGER", pager)
		cmd := &cobra.Command{Use: "show"}
		cmd.SetOut(terminal)
		cmd.SetErr(io.Discard)
		for _, lines := range []int{0, 100_000} {
			err := paged(cmd, func(out *screen) error {
				require.True(t, out.people)
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
	require.ErrorIs(t, paged(&cobra.Command{}, func(_ *screen) error { return failed }), failed)
}

//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts types the commands of testdata/script/*.txt: a page for each behavior, with its input files and the output
// that is right. In a page $WORK is a fresh HOME, $DEMO the demo stores of testdata, and `exec sessionfs` the program.
// A page that mounts asks for `[fuse]` first, mounts at $WORK/mnt and unmounts at its end.
func TestScripts(t *testing.T) {
	demo, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("SESSIONFS_UPDATE_SCRIPTS") != "",
		Condition: func(name string) (bool, error) {
			if name != "fuse" {
				return false, os.ErrInvalid
			}
			file, err := os.OpenFile(fuseDevice, os.O_RDWR, 0)
			if err != nil {
				skip(t, "FUSE cannot be used: "+err.Error())
				return false, nil
			}
			return true, file.Close()
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("DEMO", demo)
			env.Setenv("TZ", "UTC")
			env.Setenv("PATH", filepath.Dir(program)+":"+os.Getenv("PATH"))
			// A page that failed may have left its mount.
			env.Defer(func() { _ = exec.Command(program, "-u", "-z", filepath.Join(env.WorkDir, "mnt")).Run() })
			return nil
		},
	})
}

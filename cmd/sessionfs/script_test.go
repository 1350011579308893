//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"sessionfs/fs"
)

// TestScripts types the commands of testdata/script/*.txt: a page for each behavior, with its input files and the output
// that is right. In a page $WORK is a fresh HOME, $DEMO the demo stores of testdata, $SMALL an agent directory with one session
// (entries e0, below it e1 – e2 and e3, the leaf), $PROGRAMS the programs of fs/testdata, `exec sessionfs` the program as it is
// typed, and bash knows the functions of testdata/lib.sh. A page that mounts asks for `[fuse]` first. `mount [OPTION...] SOURCE` mounts at
// $MNT, which is $WORK/mnt, with the log in $WORK/log; `unmount`, which the end of a page does too, first looks for files that the
// daemon left open.
func TestScripts(t *testing.T) {
	place := map[string]string{"DEMO": "../../testdata", "SMALL": "testdata/small", "PROGRAMS": "../../fs/testdata", "BASH_ENV": "testdata/lib.sh"}
	for name, dir := range place {
		var err error
		if place[name], err = filepath.Abs(dir); err != nil {
			t.Fatal(err)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("SESSIONFS_UPDATE_SCRIPTS") != "",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"mount": scriptMount,
			"unmount": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Check(ts.Chdir(ts.Getenv("WORK")))
				ts.Check(endScript(ts.Getenv("WORK")))
			},
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "root":
				return os.Geteuid() == 0, nil
			case "race":
				return underRace(), nil
			case "full":
				return fullSize, nil
			case "fuse":
				file, err := os.OpenFile(fuseDevice, os.O_RDWR, 0)
				if err != nil {
					skip(t, "FUSE cannot be used: "+err.Error())
					return false, nil
				}
				return true, file.Close()
			}
			return false, os.ErrInvalid
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("MNT", env.WorkDir+"/mnt")
			env.Setenv("TZ", "UTC")
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Setenv("PATH", filepath.Dir(typedProgram)+":"+os.Getenv("PATH"))
			for name, dir := range place {
				env.Setenv(name, dir)
			}
			env.Defer(func() {
				if err := endScript(env.WorkDir); err != nil {
					t.Error(env.T().(interface{ Name() string }).Name(), err)
					for _, e := range mountsBelow(env.WorkDir) {
						_ = exec.Command(program, "-u", "-z", e.Mountpoint).Run()
					}
				}
			})
			return nil
		},
	})
}

// underRace reports whether the race detector is on, which takes time and memory of its own.
func underRace() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// scriptMount is the command mount.
func scriptMount(ts *testscript.TestScript, neg bool, args []string) {
	mountpoint := ts.Getenv("MNT")
	ts.Check(os.MkdirAll(mountpoint, 0o700))
	err := ts.Exec(program, slices.Concat([]string{"--log-file", ts.Getenv("WORK") + "/log"}, args, []string{mountpoint})...)
	if (err != nil) != neg {
		ts.Fatalf("mount: %v", err)
	}
}

// mountsBelow returns the mounts in a directory.
func mountsBelow(dir string) []fs.MountEntry {
	return slices.DeleteFunc(fs.AllMounts(), func(e fs.MountEntry) bool { return !strings.HasPrefix(e.Mountpoint, dir+"/") })
}

// endScript ends the mounts of a page, after a look at the files that its daemon still has open: those of sessions, and
// directories.
func endScript(work string) error {
	mounts := mountsBelow(work)
	if len(mounts) == 0 {
		return nil
	}
	var leaked []string
	if !eventually(func() bool { // the kernel may close a file after the program did
		leaked = nil
		for _, pid := range daemons(work) {
			links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
			for _, fd := range links {
				name, err := os.Readlink(fd)
				name = strings.TrimSuffix(strings.TrimSuffix(name, " (deleted)"), ".gz")
				if err != nil || !strings.HasPrefix(name, work) || strings.HasSuffix(name, ".jsonl") || name == work+"/log" ||
					strings.HasPrefix(name, work+"/.tmp/") {
					continue
				}
				if info, err := os.Stat(fd); err == nil && !info.IsDir() {
					leaked = append(leaked, name)
				}
			}
		}
		return len(leaked) == 0
	}) {
		return fmt.Errorf("the daemon leaks descriptors: %q", leaked)
	}
	if text, _ := os.ReadFile(work + "/log"); strings.Contains(string(text), "panic") {
		return fmt.Errorf("the daemon panicked:\n%s", text)
	}
	for _, e := range mounts {
		var said []byte
		if !eventually(func() bool { // a program that looks through all files of the machine may just be in it
			out, err := exec.Command(program, "-u", e.Mountpoint).CombinedOutput()
			said = out
			return err == nil
		}) {
			return fmt.Errorf("%s", said)
		}
	}
	return nil
}

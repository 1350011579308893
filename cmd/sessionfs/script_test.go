//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sessionfs/fs"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts types the commands of testdata/script/*.txt: a page for each behavior, with its input files and the output
// that is right. In a page $WORK is a fresh HOME, $DEMO the demo stores of testdata, $SMALL an agent directory with one session
// (entries e0, below it e1 – e2 and e3, the leaf), $PROGRAMS the programs of fs/testdata, `exec sessionfs` the program, and bash
// knows the functions of testdata/lib.sh. A page that mounts asks for `[fuse]` first. `mount [OPTION...] SOURCE` mounts at
// $WORK/mnt with the log in $WORK/log; `unmount`, which the end of a page does too, first looks for files that the daemon left open.
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
			case "full":
				return os.Getenv("SESSIONFS_TEST_FULL") == "1", nil
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
			env.Setenv("TZ", "UTC")
			env.Setenv("PATH", filepath.Dir(program)+":"+os.Getenv("PATH"))
			for name, dir := range place {
				env.Setenv(name, dir)
			}
			env.Defer(func() {
				if err := endScript(env.WorkDir); err != nil {
					t.Error(env.T().(interface{ Name() string }).Name(), err)
					_ = exec.Command(program, "-u", "-z", env.WorkDir+"/mnt").Run()
				}
			})
			return nil
		},
	})
}

// scriptMount is the command mount.
func scriptMount(ts *testscript.TestScript, neg bool, args []string) {
	work := ts.Getenv("WORK")
	ts.Check(os.MkdirAll(work+"/mnt", 0o700))
	err := ts.Exec("sessionfs", slices.Concat([]string{"--log-file", work + "/log"}, args, []string{work + "/mnt"})...)
	if (err != nil) != neg {
		ts.Fatalf("mount: %v", err)
	}
}

// endScript ends the mount of a page, after a look at the files that its daemon still has open: those of sessions, and
// directories.
func endScript(work string) error {
	if _, mounted := fs.MountAt(work + "/mnt"); !mounted {
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
	if said, err := exec.Command(program, "-u", work+"/mnt").CombinedOutput(); err != nil {
		return fmt.Errorf("%s", said)
	}
	return nil
}

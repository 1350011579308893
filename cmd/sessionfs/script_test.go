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
// that is right. A page knows, beside testscript's own words:
//
//	$WORK                     a fresh HOME, the working directory
//	$DEMO                     the demo stores of testdata
//	$SMALL                    an agent directory with one session: entries e0, below it e1 – e2 and e3, the leaf
//	$PROGRAMS                 the programs of fs/testdata
//	$MNT                      $WORK/mnt
//	exec sessionfs            the program as it is typed
//	exec bash                 knows the functions of testdata/lib.sh
//	mount [OPTION...] SOURCE  mounts at $MNT, with the log in $WORK/log
//	unmount                   unmounts, also at the end of a page, after a look for files that the daemon left open
//	[fuse]                    whether FUSE can be used: a page that mounts asks for it first
//	[root], [race], [full]    whether the tests run as root, with the race detector, at full size
func TestScripts(t *testing.T) {
	place := map[string]string{
		"DEMO":     "../../testdata",
		"SMALL":    "testdata/small",
		"PROGRAMS": "../../fs/testdata",
		"BASH_ENV": "testdata/lib.sh",
	}
	for name, dir := range place {
		path, err := filepath.Abs(dir)
		if err != nil {
			t.Fatal(err)
		}
		place[name] = path
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
			return scriptCondition(t, name)
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("MNT", env.WorkDir+"/mnt")
			env.Setenv("TZ", "UTC")
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Setenv("PATH", filepath.Dir(typedProgram)+":"+os.Getenv("PATH"))
			for name, path := range place {
				env.Setenv(name, path)
			}
			env.Defer(func() {
				err := endScript(env.WorkDir)
				if err == nil {
					return
				}
				t.Error(env.T().(interface{ Name() string }).Name(), err)
				for _, e := range mountsBelow(env.WorkDir) {
					_ = exec.Command(program, "-u", "-z", e.Mountpoint).Run()
				}
			})
			return nil
		},
	})
}

// scriptCondition tells whether a condition of a page holds. Where FUSE cannot be used, the test is skipped, or fails.
func scriptCondition(t *testing.T, name string) (bool, error) {
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
}

// underRace reports whether the race detector is on, which takes time and memory of its own.
func underRace() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// scriptMount is the command mount. neg says that it must fail.
func scriptMount(ts *testscript.TestScript, neg bool, args []string) {
	mountpoint := ts.Getenv("MNT")
	ts.Check(os.MkdirAll(mountpoint, 0o700))
	words := append([]string{"--log-file", ts.Getenv("WORK") + "/log"}, args...)
	err := ts.Exec(program, append(words, mountpoint)...)
	failed := err != nil
	if failed != neg {
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
	isClosed := eventually(func() bool { // the kernel may close a file after the program did
		leaked = leakedFiles(work)
		return len(leaked) == 0
	})
	if !isClosed {
		return fmt.Errorf("the daemon leaks descriptors: %q", leaked)
	}
	log, _ := os.ReadFile(work + "/log")
	if strings.Contains(string(log), "panic") {
		return fmt.Errorf("the daemon panicked:\n%s", log)
	}
	for _, e := range mounts {
		var said []byte
		isEnded := eventually(func() bool { // a program that looks through all files of the machine may just be in it
			out, err := exec.Command(program, "-u", e.Mountpoint).CombinedOutput()
			said = out
			return err == nil
		})
		if !isEnded {
			return fmt.Errorf("%s", said)
		}
	}
	return nil
}

// leakedFiles returns the names of the files of a page that its daemons have open, but for those that they may keep:
// sessions, the log, directories, and temporary files.
func leakedFiles(work string) (leaked []string) {
	for _, pid := range daemons(work) {
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, fd := range links {
			name, err := os.Readlink(fd)
			if err != nil || !strings.HasPrefix(name, work) {
				continue
			}
			name = strings.TrimSuffix(name, " (deleted)")
			name = strings.TrimSuffix(name, ".gz")
			isTemporary := strings.HasPrefix(name, work+"/.tmp/")
			mayBeOpen := strings.HasSuffix(name, ".jsonl") || name == work+"/log" || isTemporary
			if mayBeOpen {
				continue
			}
			info, err := os.Stat(fd)
			if err == nil && !info.IsDir() {
				leaked = append(leaked, name)
			}
		}
	}
	return leaked
}

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
)

// release is the version that a packager gives a build from an archive of the source, where the
// tool chain finds no tag:
//
//	go build -ldflags '-X main.release=v1.2.3' ./cmd/sessionfs
var release string

// shownRevision is how many digits of a commit's or a build's hash are shown, as many as git shows.
const shownRevision = 12

// version returns what this program was built from, by its build information; build returns a name for a build
// without any.
func version(build func() string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return describe(release, info, build)
}

// describe returns build information as one line. The version is, in this order: the packager's, the tag or
// commit of the main module, the commit of the working copy. A build that knows none of them
// (-buildvcs=false, an archive of the source) is named by build, a hash of the program itself.
func describe(release string, info *debug.BuildInfo, build func() string) string {
	setting := map[string]string{}
	for _, s := range info.Settings {
		setting[s.Key] = s.Value
	}
	v := release
	if v == "" && info.Main.Version != "(devel)" {
		v = info.Main.Version
	}
	var with []string
	if revision := setting["vcs.revision"]; revision != "" {
		revision = revision[:min(len(revision), shownRevision)]
		if v == "" {
			v = "commit-" + revision
		}
		commit := "commit " + revision
		if date, _, ok := strings.Cut(setting["vcs.time"], "T"); ok {
			commit += " of " + date
		}
		if setting["vcs.modified"] == "true" {
			commit += ", modified"
		}
		with = append(with, commit)
	}
	if v == "" {
		v = "build-" + build()
		with = append(with, "built without its commit")
	}
	if info.GoVersion != "" {
		with = append(with, info.GoVersion)
	}
	for _, dep := range info.Deps {
		if dep.Path == "github.com/hanwen/go-fuse/v2" {
			with = append(with, "go-fuse "+dep.Version)
		}
	}
	return fmt.Sprintf("%s (%s)", v, strings.Join(with, ", "))
}

// unknownBuild is the name where the hash is not worth its cost, in the log of a mount.
func unknownBuild() string { return "unknown" }

// buildHash returns the beginning of the SHA-256 of the running program, which distinguishes two builds.
func buildHash() string {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return unknownBuild()
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return unknownBuild()
	}
	return hex.EncodeToString(h.Sum(nil))[:shownRevision]
}

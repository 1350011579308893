package main

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// release is the version that a packager gives a build from an archive of the source, where the
// tool chain finds no tag:
//
//	go build -ldflags '-X main.release=v1.2.3' ./cmd/sessionfs
var release string

// version returns what this program was built from: the packager's version, else what the tool chain makes of the tag and the
// commit of the working copy, which some builds do not know (-buildvcs=false, an archive of the source).
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return describe(release, info)
}

func describe(release string, info *debug.BuildInfo) string {
	v := release
	if v == "" && info.Main.Version != "(devel)" {
		v = info.Main.Version
	}
	var with []string
	if v == "" {
		v = "unknown"
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

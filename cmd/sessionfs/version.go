package main

import (
	"runtime/debug"
	"strings"
)

// version tells what this program was built from, as far as the build noted it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown version"
	}
	return describe(info)
}

// describe writes build information on one line.
func describe(info *debug.BuildInfo) string {
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "(devel)"
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v += " " + s.Value
			}
		}
	}
	with := []string{info.GoVersion}
	for _, dep := range info.Deps {
		if dep.Path == "github.com/hanwen/go-fuse/v2" {
			with = append(with, "go-fuse "+dep.Version)
		}
	}
	return v + " (" + strings.Join(with, ", ") + ")"
}

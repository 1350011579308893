package layout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCopiedAs(t *testing.T) {
	const session = "2026-03-30T07-12-41-318Z_019d3d96"
	for _, test := range []struct {
		dir, name string
		beside    bool
		want      Copied
	}{
		{"", "x.jsonl", false, CopiedSession},
		{"--p--", "x.jsonl", false, CopiedSession},
		{"--p--", ".x.jsonl.AbC123", false, CopiedTemporary},
		{"--p--", "x.jsonl.f00.partial", false, CopiedTemporary},
		{"--p--", "x.jsonl~", false, NotCopied},
		{"--p--", "x.jsonl.bak", false, NotCopied},
		{"--p--", "x.jsonl.part", false, CopiedTemporary},
		{"--p--", "notes.txt", false, NotCopied},
		{"--p--", "sedAbC123", false, NotCopied},
		{"--p--", ".x.jsonl.lock", false, NotCopied},
		{"--p--", ".x.jsonl.0123ab.tmp", false, NotCopied},
		{"--p--", "x.jsonl.0123ab.bak", false, NotCopied},
		{"--p--", ".x.jsonl", false, NotCopied},
		{"--p--", ".hidden", false, NotCopied},
		{"--p--/" + session, "0.bash.log", false, CopiedArtifact},
		{"--p--/" + session, ".0.bash.log.AbC123", false, CopiedTemporary},
		{"--p--/" + session, "sub.jsonl", false, CopiedArtifact},
		{"--p--/" + session, "sedAbC123", false, NotCopied},
		{"--p--/" + session, "0.bash.log~", false, NotCopied},
		{"--p--/" + session + "/local", "LICENSE", false, CopiedArtifact},
		{session, "0.bash.log", false, CopiedArtifact},
		{"x", "0.bash.log", true, CopiedArtifact},
		{"x", "0.bash.log", false, NotCopied},
		{"x", "sub.jsonl", true, CopiedArtifact},
	} {
		require.Equal(t, test.want, CopiedAs(test.dir, test.name, test.beside), "%s/%s", test.dir, test.name)
	}
}

func TestIsBeside(t *testing.T) {
	for dir, want := range map[string]bool{
		"": false, "--p--": false, "-p": false, "--p--/x": true, "--p--/x/local": true,
		"2026-03-30T07-12-41-318Z_019d3d96": true, "2026-03-30": false,
	} {
		require.Equal(t, want, IsBeside(dir), dir)
	}
}

func TestMayMakeDir(t *testing.T) {
	const session = "2026-03-30T07-12-41-318Z_019d3d96"
	for _, test := range []struct {
		dir, name string
		beside    bool
		want      bool
	}{
		{"", "--p--", false, true},
		{"", ".git", false, false},
		{"--p--", session, false, true},
		{"--p--", "new", false, false},
		{"--p--/" + session, "local", false, true},
		{"--p--/s", "local", true, true},
		{session, "local", false, true},
		{"--p--/" + session, ".local", true, false},
	} {
		require.Equal(t, test.want, MayMakeDir(test.dir, test.name, test.beside), "%s/%s", test.dir, test.name)
	}
}

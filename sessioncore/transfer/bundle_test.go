package transfer

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// archived returns a tar archive of files with one content, and a right manifest. change may change that, nil to leave it; a
// manifest without a format is omitted.
func archived(t *testing.T, headers []tar.Header, content string, change func(*manifest)) string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	m := manifest{Format: bundleFormat}
	for _, h := range headers {
		text := content
		isFile := h.Typeflag == 0 || h.Typeflag == tar.TypeReg
		if !isFile {
			text = ""
		}
		h.Size = int64(len(text))
		h.Mode = 0o600
		require.NoError(t, w.WriteHeader(&h))
		_, err := io.WriteString(w, text)
		require.NoError(t, err)
		m.Files = append(m.Files, bundledFile{h.Name, h.Size, hashOf(text)})
	}
	if change != nil {
		change(&m)
	}
	if m.Format != "" {
		text, err := json.Marshal(m)
		require.NoError(t, err)
		require.NoError(t, w.WriteHeader(&tar.Header{Name: manifestName, Size: int64(len(text)), Mode: 0o600}))
		_, err = w.Write(text)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.String()
}

// addSum adds its checksum to a header of a tar archive. The field of the sum counts as blanks.
func addSum(header []byte) {
	field := header[148:156]
	copy(field, "        ")
	sum := 0
	for _, b := range header {
		sum += int(b)
	}
	copy(field, fmt.Sprintf("%06o\x00 ", sum))
}

// TestHostileBundles: a bundle that is not as sessionfs bundle wrote it is refused as a whole, and
// nothing is written.
func TestHostileBundles(t *testing.T) {
	text := headerOf("x", "/w") + line
	file := func(name string) tar.Header { return tar.Header{Name: name} }
	of := func(names ...string) string {
		var headers []tar.Header
		for _, name := range names {
			headers = append(headers, file(name))
		}
		return archived(t, headers, text, nil)
	}
	changed := func(change func(*manifest)) string {
		return archived(t, []tar.Header{file("sessions/p/x.jsonl")}, text, change)
	}
	good := of("sessions/p/x.jsonl")
	huge := []byte(good)
	copy(huge[124:136], "\x80\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff") // the size, in base 256
	addSum(huge[:512])
	for name, bundle := range map[string]string{
		"above":           of("sessions/p/x.jsonl", "../x.jsonl"),
		"absolute":        of("/sessions/p/x.jsonl"),
		"through":         of("sessions/p/../../../x.jsonl"),
		"a link":          archived(t, []tar.Header{{Name: "sessions/p", Typeflag: tar.TypeSymlink, Linkname: "/etc"}}, text, nil),
		"a hard link":     archived(t, []tar.Header{{Name: "sessions/p/x.jsonl", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}}, text, nil),
		"a device":        archived(t, []tar.Header{{Name: "sessions/p/x.jsonl", Typeflag: tar.TypeChar}}, text, nil),
		"twice":           of("sessions/p/x.jsonl", "sessions/p/x.jsonl"),
		"file and dir":    of("sessions/p/x.jsonl", "sessions/p/x.jsonl/y.jsonl"),
		"dir and file":    of("sessions/p/x.jsonl/y.jsonl", "sessions/p/x.jsonl"),
		"another format":  changed(func(m *manifest) { m.Format = "sessionfs bundle 2" }),
		"another hash":    changed(func(m *manifest) { m.Files[0].SHA256 = hashOf("x") }),
		"one too many":    changed(func(m *manifest) { m.Files = nil }),
		"one is missing":  changed(func(m *manifest) { m.Files = append(m.Files, bundledFile{"blobs/x", 1, hashOf("x")}) }),
		"after manifest":  archived(t, []tar.Header{file(manifestName), file("sessions/p/x.jsonl")}, `{"format":"sessionfs bundle 1"}`, nil),
		"cut":             good[:700],
		"a changed byte":  strings.Replace(good, "one", "two", 1),
		"a huge size":     string(huge),
		"nothing in it":   strings.Repeat("\x00", 1024),
		"a newline":       of("sessions/p\nq/x.jsonl"),
		"an escape":       of("sessions/p/x.jsonl", "sessions/p/x/\x1b[2J.log"),
		"a C1 control":    of("sessions/p/\u009b2J.jsonl"),
		"a byte of C1":    of("sessions/p/\x9b2J.jsonl"),
		"backwards":       of("sessions/p/\u202elnosj.jsonl"),
		"deep":            of("sessions/" + strings.Repeat("d/", 1000) + "x.jsonl"),
		"a long name":     of("sessions/" + strings.Repeat(strings.Repeat("d", 200)+"/", 16) + "x.jsonl"),
		"an odd manifest": archived(t, []tar.Header{file(manifestName)}, "[1]", func(m *manifest) { m.Format = "" }),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.tar")
			require.NoError(t, os.WriteFile(path, []byte(bundle), 0o600))
			s := newStore(t)
			outcomes := s.take(path)
			require.Len(t, outcomes, 1)
			require.True(t, strings.HasPrefix(outcomes[0], "refused it is neither "), outcomes[0])
			require.Empty(t, all(t, s.top))
		})
	}
	path := filepath.Join(t.TempDir(), "x.tar")
	require.NoError(t, os.WriteFile(path, []byte(good), 0o600))
	require.Equal(t, []string{"new sessions/p/x.jsonl"}, newStore(t).take(path))
}

// sparseWays are the ways of GNU tar to say that a file of 3 GB has 512 bytes in an archive, as records of its header.
var sparseWays = map[string][]string{
	"the oldest":       nil,
	"0.0":              {"size=3221225472", "numblocks=1", "offset=0", "numbytes=512"},
	"0.1":              {"size=3221225472", "numblocks=1", "map=0,512"},
	"0.1, with a name": {"size=3221225472", "numblocks=1", "map=0,512", "name=sessions/p/x.jsonl"},
	"1.0":              {"major=1", "minor=0", "realsize=3221225472", "name=sessions/p/x.jsonl"},
	"a name alone":     {"name=sessions/p/x.jsonl"},
}

// sparse returns a bundle of one sparse file, in one of sparseWays.
func sparse(way string) string {
	data := fmt.Sprintf("%-511s\n", headerOf("x", "/w"))
	if way == "1.0" {
		data = fmt.Sprintf("%-512s", "1\n0\n512\n") + data
	}
	var records strings.Builder
	for _, record := range sparseWays[way] {
		size := len(" GNU.sparse."+record+"\n") + 2 // with its own two digits
		fmt.Fprintf(&records, "%d GNU.sparse.%s\n", size, record)
	}
	const name = "sessions/p/x.jsonl"
	end := strings.Repeat("\x00", 2*tarBlock)
	if way == "the oldest" {
		return rawMember(name, tar.TypeGNUSparse, data) + end
	}
	return rawMember("pax", tar.TypeXHeader, records.String()) + rawMember(name, tar.TypeReg, data) + end
}

// rawMember returns a member of an archive, as its bytes, since archive/tar writes no sparse ones. A sparse member says that its
// data is the first block of a file of 3 GB.
func rawMember(name string, typ byte, data string) string {
	h := make([]byte, tarBlock)
	copy(h, name)
	copy(h[100:], "0000600\x000000000\x000000000\x00")                // mode, owner and group
	copy(h[124:], fmt.Sprintf("%011o\x0000000000000\x00", len(data))) // size and time
	h[156] = typ
	copy(h[257:], "ustar\x0000")
	if typ == tar.TypeGNUSparse {
		copy(h[257:], "ustar  \x00")
		copy(h[386:], "00000000000\x0000000001000\x00") // offset and size of the data
		copy(h[483:], "30000000000\x00")                // the size of the file
	}
	addSum(h)
	padding := -len(data) & (tarBlock - 1)
	return string(h) + data + strings.Repeat("\x00", padding)
}

// TestSparseBundles tries all ways in which an archive of 3 KB can say that it has 3 GB: none is
// unpacked.
func TestSparseBundles(t *testing.T) {
	for way := range sparseWays {
		t.Run(way, func(t *testing.T) {
			bundle := sparse(way)
			h, err := tar.NewReader(strings.NewReader(bundle)).Next()
			require.NoError(t, err)
			if way != "a name alone" {
				require.Equal(t, int64(3221225472), h.Size)
			}
			to := t.TempDir()
			_, err = unpack(t.Context(), strings.NewReader(bundle), to)
			require.ErrorContains(t, err, "is sparse")
			require.Empty(t, all(t, to))
		})
	}
}

// TestCompressedInTotal imports archives each of which is as large as a session may be, but
// together they are larger than sessions of that many compressed bytes can be.
func TestCompressedInTotal(t *testing.T) {
	defer func(free int64) { freeTotal = free }(freeTotal)
	freeTotal = 3 << 20
	large := strings.Repeat(strings.Replace(line, "one", strings.Repeat("x", 1000), 1), 1000)
	files := map[string]string{}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		files["sessions/p/"+id+".jsonl.gz"] = packed(t, headerOf(id, "/w")+large)
	}
	files["sessions/p/z.jsonl"] = headerOf("z", "/w") + line
	files["sessions/p/z/sub.jsonl.gz"] = packed(t, headerOf("sub", "/w")+large)
	top := t.TempDir()
	put(t, top, files)
	s := newStore(t)
	outcomes := s.take(top)
	require.Equal(t, []string{"new sessions/p/a.jsonl", "new sessions/p/b.jsonl"}, outcomes[:2])
	for _, outcome := range outcomes[2:5] {
		require.Equal(t, "refused "+errBomb.Error(), outcome)
	}
	require.Equal(t, "partly new sessions/p/z.jsonl; sub.jsonl beside it is refused: "+errBomb.Error(), outcomes[5])
	require.Len(t, all(t, s.top), 3)

	// Uncompressed files have no such limit, nor have archives that are as small as those of
	// sessions are.
	files = map[string]string{"sessions/p/z.jsonl": headerOf("z", "/w") + line}
	for _, id := range []string{"a", "b", "c", "d"} {
		files["sessions/p/"+id+".jsonl"] = headerOf(id, "/w") + large
	}
	top = t.TempDir()
	put(t, top, files)
	s = newStore(t)
	s.take(top)
	require.Len(t, all(t, s.top), len(files))
}

// TestNamesOnDisk imports a directory with names that no session has: they are not made in SOURCE.
func TestNamesOnDisk(t *testing.T) {
	top := t.TempDir()
	deep := "sessions/" + strings.Repeat("d/", maxDepth) + "x.jsonl"
	put(t, top, map[string]string{
		"sessions/p\nq/x.jsonl":          headerOf("x", "/w") + line,
		"sessions/p/y.jsonl":             headerOf("y", "/w") + line,
		"sessions/p/y/\x1b[2Jz.log":      "z",
		"sessions/p/y/fine.log":          "fine",
		deep:                             headerOf("deep", "/w") + line,
		"sessions/p/\x1b]0;evil\a.jsonl": headerOf("evil", "/w") + line,
	})
	s := newStore(t)
	for _, text := range s.take(top) {
		require.True(t, strings.HasPrefix(text, "refused its name") ||
			strings.HasPrefix(text, "partly new sessions/p/y.jsonl; \x1b[2Jz.log beside it is refused: its name"), text)
	}
	require.Equal(t, map[string]string{"sessions/p/y.jsonl": headerOf("y", "/w") + line, "sessions/p/y/fine.log": "fine"}, all(t, s.top))
}

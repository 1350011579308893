package nodes

import (
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// imports is which packages of FUSE and of ours each package above the model may import. Imports go one way, and names of
// the mount are computed without FUSE. The model has a table of its own.
var imports = map[string][]string{
	"nodes/layout": {
		"sessionfs/sessioncore", "sessionfs/sessioncore/clients", "sessionfs/sessioncore/listing", "sessionfs/sessioncore/names",
		"sessionfs/sessioncore/report", "sessionfs/sessioncore/search", "sessionfs/sessioncore/storage",
	},
	"nodes": {
		"sessionfs/nodes/layout", "sessionfs/sessioncore", "sessionfs/sessioncore/blame", "sessionfs/sessioncore/budget",
		"sessionfs/sessioncore/document", "sessionfs/sessioncore/history", "sessionfs/sessioncore/listing", "sessionfs/sessioncore/names",
		"sessionfs/sessioncore/storage",
		"sessionfs/sessioncore/report", "sessionfs/sessioncore/search", "sessionfs/sessioncore/view", "sessionfs/sessioncore/writer",
	},
	"nodes/direct": {"sessionfs/nodes", "sessionfs/sessioncore/storage"},
	"nodes/nfs":    {"sessionfs/nodes", "sessionfs/sessioncore", "sessionfs/sessioncore/storage"},
	"nodes/kernel": {
		"github.com/hanwen/go-fuse/v2/fs", "github.com/hanwen/go-fuse/v2/fuse",
		"sessionfs/nodes", "sessionfs/sessioncore/storage",
	},
	"blobfs":    {"sessionfs/sessioncore", "sessionfs/sessioncore/document", "sessionfs/sessioncore/storage", "sessionfs/sessioncore/writer"},
	"mountopts": {},
	"mcp":       {"sessionfs/sessioncore/names", "sessionfs/sessioncore/storage"},
	"fs": {
		"github.com/hanwen/go-fuse/v2/fuse",
		"sessionfs/blobfs", "sessionfs/mountopts", "sessionfs/nodes", "sessionfs/nodes/kernel", "sessionfs/nodes/nfs", "sessionfs/nodes/layout",
		"sessionfs/sessioncore", "sessionfs/sessioncore/budget", "sessionfs/sessioncore/clients", "sessionfs/sessioncore/forks",
		"sessionfs/sessioncore/history", "sessionfs/sessioncore/history/promptdb", "sessionfs/sessioncore/ledger", "sessionfs/sessioncore/listing", "sessionfs/sessioncore/report",
		"sessionfs/sessioncore/storage", "sessionfs/sessioncore/agents", "sessionfs/sessioncore/agents/all",
		"sessionfs/sessioncore/storage/dir", "sessionfs/sessioncore/storage/gzip",
		"sessionfs/sessioncore/storage/postgres", "sessionfs/sessioncore/secrets",
		"sessionfs/nodes/direct", "sessionfs/sessioncore/search", "sessionfs/sessioncore/transfer", "sessionfs/sessioncore/writer",
	},
	"source": {
		"sessionfs/fs", "sessionfs/mountopts", "sessionfs/nodes/layout", "sessionfs/sessioncore", "sessionfs/sessioncore/agents",
		"sessionfs/sessioncore/budget", "sessionfs/sessioncore/listing", "sessionfs/sessioncore/names", "sessionfs/sessioncore/storage",
		"sessionfs/sessioncore/storage/dir", "sessionfs/sessioncore/storage/gzip", "sessionfs/testdata",
	},
	"cmd/sessionfs": {"sessionfs/fs", "sessionfs/mcp", "sessionfs/source", "sessionfs/nodes/direct", "sessionfs/mountopts", "sessionfs/nodes/layout", "sessionfs/sessioncore",
		"sessionfs/sessioncore/agents", "sessionfs/sessioncore/blame", "sessionfs/sessioncore/listing", "sessionfs/sessioncore/names",
		"sessionfs/sessioncore/report", "sessionfs/sessioncore/search", "sessionfs/sessioncore/storage", "sessionfs/sessioncore/storage/postgres",
		"sessionfs/sessioncore/storage/sqlite", "sessionfs/sessioncore/secrets", "sessionfs/sessioncore/transfer", "sessionfs/sessioncore/view", "sessionfs/sessioncore/writer",
		"sessionfs/testdata"},
}

// TestImports holds what each package imports against the table, which has all packages of nodes.
func TestImports(t *testing.T) {
	for pkg, allowed := range imports {
		found, err := build.ImportDir("../"+pkg, 0)
		require.NoError(t, err)
		for _, path := range found.Imports {
			if strings.HasPrefix(path, "sessionfs/") || strings.Contains(path, "fuse") {
				require.Contains(t, allowed, path, "imports of %s", pkg)
			}
		}
	}
	items, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, item := range items {
		if item.IsDir() {
			require.Contains(t, imports, "nodes/"+item.Name())
		}
	}
}

// TestDatabasesAreRegistered: the nodes and their tests are built without SQLite, which the program brings.
func TestDatabasesAreRegistered(t *testing.T) {
	list := exec.Command("go", "list", "-test", "-deps", ".")
	var problems strings.Builder
	list.Stderr = &problems
	names, err := list.Output()
	require.NoError(t, err, problems.String())
	require.Contains(t, string(names), "sessionfs/sessioncore/history\n")
	require.NotContains(t, string(names), "sqlite")
}

// TestFuseHasOneDoor: beside package kernel, only the file that starts a server knows FUSE.
func TestFuseHasOneDoor(t *testing.T) {
	found, err := build.ImportDir("../fs", 0)
	require.NoError(t, err)
	for _, at := range found.ImportPos["github.com/hanwen/go-fuse/v2/fuse"] {
		require.Equal(t, "server.go", filepath.Base(at.Filename))
	}
}

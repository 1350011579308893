package nodes

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
)

// kind distinguishes nodes that can have the same name in the same directory, so that each has its own inode
// number.
type kind byte

const (
	kindStatic    kind = iota // one of a directory's fixed names
	kindSourceDir             // a directory of SOURCE
	kindSourceFile
	kindSourceLink
	kindSession // the directory that shows a session file
	kindEntry
	kindTreeDir
	kindTreeLink
	kindPendingLink // a link that waits to be renamed to leaf
	kindBranch
	kindBranchLink // a branch in branches/
	kindPathLink
	kindLabelLink
	kindSessionLink // a link that finds a session
	kindCwdDir
	kindSearch // an answer in history/search
	kindFile   // the directory of a file in by-file/
)

// stableAttr returns an identity that is the same in every mount of the same tree: a hash of the
// parent's identity, the kind and the name (docs/design.md section 6). The second half of the hash is
// the generation: go-fuse takes two nodes for one only if both are equal, so that even names chosen to collide
// in the inode number are two files.
func stableAttr(parent fusefs.StableAttr, k kind, name string, mode uint32) fusefs.StableAttr {
	var buf [256 + 17]byte
	b := binary.LittleEndian.AppendUint64(buf[:0], parent.Ino)
	b = binary.LittleEndian.AppendUint64(b, parent.Gen)
	b = append(b, byte(k))
	b = append(b, name...)
	sum := sha256.Sum256(b)
	ino := binary.LittleEndian.Uint64(sum[:])
	if ino <= 1 || ino == math.MaxUint64 {
		ino = 2 // 0, 1 and the largest number are reserved by the kernel or go-fuse
	}
	return fusefs.StableAttr{Mode: mode, Ino: ino, Gen: binary.LittleEndian.Uint64(sum[8:])}
}

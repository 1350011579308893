package fs_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// diskImage is what a disk may have after a loss of power: the content of its files by their paths. Directories end in a
// slash, symbolic links in an @; what they have is where they lead.
type diskImage map[string]string

// Write makes the files of an image in a directory.
func (i diskImage) Write(dir string) error {
	for _, path := range slices.Sorted(maps.Keys(i)) {
		at := filepath.Join(dir, path)
		var err error
		if strings.HasSuffix(path, "/") {
			err = os.MkdirAll(at, 0o700)
		} else if link, ok := strings.CutSuffix(at, "@"); ok {
			err = os.Symlink(i[path], link)
		} else {
			err = os.WriteFile(at, []byte(i[path]), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// key identifies an image.
func (i diskImage) key() string {
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(i)) {
		_, _ = fmt.Fprintf(h, "%q %q\n", path, i[path])
	}
	return string(h.Sum(nil))
}

// disk is the state of a disk and of the cache above it.
type disk struct {
	nodes map[int]*inode
	pairs int // how many renames between directories there were
}

// inode is a file, link or directory: what is durable, and the changes after that.
type inode struct {
	isDir   bool
	isLink  bool // data is where it leads
	data    []byte
	names   map[string]int
	changes []diskOp
}

func newDisk() *disk {
	return &disk{nodes: map[int]*inode{0: {isDir: true, names: map[string]int{}}}}
}

// add takes a change into the cache, or puts what is there on the disk.
func (d *disk) add(op diskOp) {
	switch op.Kind {
	case "mark":
	case "sync":
		n := d.nodes[op.Node]
		d.settle(n, len(n.changes))
	case "write", "truncate":
		n := d.nodes[op.Node]
		n.changes = append(n.changes, op)
	case "create", "mkdir", "symlink":
		made := &inode{isDir: op.Kind == "mkdir", isLink: op.Kind == "symlink", names: map[string]int{}}
		if made.isLink {
			made.data = op.Data
		}
		d.nodes[op.Node] = made
		fallthrough
	default:
		if op.Dir != op.To && (op.Kind == "rename" || op.Kind == "exchange") {
			d.addBetween(op)
			return
		}
		n := d.nodes[op.Dir]
		n.changes = append(n.changes, op)
	}
}

// addBetween takes a rename or an exchange between two directories into the cache: a change of each.
func (d *disk) addBetween(op diskOp) {
	d.pairs++
	from, to := d.nodes[op.Dir], d.nodes[op.To]
	was, is := from.entries(len(from.changes))[op.Name], to.entries(len(to.changes))[op.New]
	left := diskOp{Kind: "unlink", Name: op.Name, pair: d.pairs}
	if op.Kind == "exchange" {
		left = diskOp{Kind: "link", Name: op.Name, Node: is, pair: d.pairs}
	}
	from.changes = append(from.changes, left)
	to.changes = append(to.changes, diskOp{Kind: "link", Name: op.New, Node: was, pair: d.pairs})
}

// settle puts the first so many changes of an inode on the disk, and with a rename the other directory up to it.
func (d *disk) settle(n *inode, changes int) {
	done := n.changes[:changes]
	n.data, n.names = n.content(changes, nil), n.entries(changes)
	n.changes = n.changes[changes:]
	for _, op := range done {
		if other, i := d.otherOf(op, n); other != nil {
			d.settle(other, i+1)
		}
	}
}

// otherOf finds the other directory's change of a rename between two, as long as that is not on the disk.
func (d *disk) otherOf(op diskOp, n *inode) (*inode, int) {
	for _, other := range d.nodes {
		for i := range other.changes {
			if op.pair != 0 && other != n && other.changes[i].pair == op.pair {
				return other, i
			}
		}
	}
	return nil, 0
}

// content is that of a file after the first so many changes, and after a last one that is not whole.
func (n *inode) content(changes int, last *diskOp) []byte {
	data := slices.Clone(n.data)
	apply := func(op diskOp) {
		if op.Kind == "truncate" {
			data = resized(data, op.Size)
			return
		}
		data = resized(data, max(int64(len(data)), op.Off+int64(len(op.Data))))
		copy(data[op.Off:], op.Data)
	}
	if n.isDir || n.isLink {
		return data
	}
	for _, op := range n.changes[:changes] {
		apply(op)
	}
	if last != nil {
		apply(*last)
	}
	return data
}

func resized(data []byte, size int64) []byte {
	if size <= int64(len(data)) {
		return data[:size]
	}
	return append(data, make([]byte, size-int64(len(data)))...)
}

// entries is a directory after the first so many changes.
func (n *inode) entries(changes int) map[string]int {
	names := maps.Clone(n.names)
	if !n.isDir {
		return names
	}
	for _, op := range n.changes[:changes] {
		switch op.Kind {
		case "create", "mkdir", "symlink", "link":
			names[op.Name] = op.Node
		case "unlink":
			delete(names, op.Name)
		case "rename":
			names[op.New] = names[op.Name]
			delete(names, op.Name)
		case "exchange":
			names[op.Name], names[op.New] = names[op.New], names[op.Name]
		}
	}
	return names
}

// choice is what of the cache has reached the disk: how many changes of an inode, and of the next one a part.
type choice struct {
	changes func(n *inode) int
	last    func(n *inode) *diskOp
}

// image is the disk with a choice.
func (d *disk) image(c choice) diskImage {
	image := diskImage{}
	c.changes = d.together(c.changes)
	var walk func(n *inode, at string)
	walk = func(n *inode, at string) {
		for name, number := range n.entries(c.changes(n)) {
			child := d.nodes[number]
			if child.isDir {
				image[at+name+"/"] = ""
				walk(child, at+name+"/")
				continue
			}
			if child.isLink {
				image[at+name+"@"] = string(child.data)
				continue
			}
			var last *diskOp
			if c.last != nil {
				last = c.last(child)
			}
			image[at+name] = string(child.content(c.changes(child), last))
		}
	}
	walk(d.nodes[0], "")
	return image
}

// together makes a choice take each rename between directories in both or in neither.
func (d *disk) together(changes func(n *inode) int) func(n *inode) int {
	chosen := map[*inode]int{}
	for _, n := range d.nodes {
		chosen[n] = changes(n)
	}
	for again := true; again; {
		again = false
		for n := range chosen {
			for i, op := range n.changes[:chosen[n]] {
				if other, j := d.otherOf(op, n); other != nil && chosen[other] <= j {
					chosen[n], again = i, true
					break
				}
			}
		}
	}
	return func(n *inode) int { return chosen[n] }
}

// images are the states that a loss of power at this moment could leave. They are not all that are possible, but for
// each file and each directory every number of changes that may have reached it, with all and with nothing of the
// rest.
func (d *disk) images() []diskImage {
	all := func(n *inode) int { return len(n.changes) }
	none := func(*inode) int { return 0 }
	kind := func(dirs, files func(*inode) int) func(*inode) int {
		return func(n *inode) int {
			if n.isDir {
				return dirs(n)
			}
			return files(n)
		}
	}
	images := []diskImage{
		d.image(choice{changes: none}), d.image(choice{changes: all}),
		d.image(choice{changes: kind(all, none)}), d.image(choice{changes: kind(none, all)}),
	}
	for _, one := range d.nodes {
		for i := range one.changes {
			for _, rest := range []func(*inode) int{all, none} {
				upTo := func(n *inode) int {
					if n == one {
						return i
					}
					return rest(n)
				}
				images = append(images, d.image(choice{changes: upTo}))
				if op := one.changes[i]; op.Kind == "write" {
					for _, part := range parts(op) {
						images = append(images, d.image(choice{changes: upTo, last: func(n *inode) *diskOp {
							if n == one {
								return &part
							}
							return nil
						}}))
					}
				}
			}
		}
	}
	return images
}

// sector is what a disk writes as a whole.
const sector = 512

// parts are what may be there of a write: nothing of it but the size, and its first half. What lies in one sector that
// was there before is written as a whole.
func parts(op diskOp) []diskOp {
	if len(op.Data) < 2 || op.Off/sector == (op.Off+int64(len(op.Data))-1)/sector && op.Off == 0 {
		return nil
	}
	zeros, half := op, op
	zeros.Data = make([]byte, len(op.Data))
	half.Data = op.Data[:len(op.Data)/2]
	return []diskOp{zeros, half}
}

// eachLoss calls f for the states that a loss of power after each change of a record could leave, with the marks before
// it. A state with the same marks comes once.
func eachLoss(ops []diskOp, f func(step int, marks []string, image diskImage)) {
	d := newDisk()
	var marks []string
	seen := map[string]bool{}
	for step, op := range ops {
		d.add(op)
		if op.Kind == "mark" {
			marks = append(marks, op.Name)
			seen = map[string]bool{}
		}
		if len(marks) == 0 {
			continue // what was there before
		}
		for _, image := range d.images() {
			if key := image.key(); !seen[key] {
				seen[key] = true
				f(step, marks, image)
			}
		}
	}
}

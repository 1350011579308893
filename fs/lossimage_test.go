package fs_test

import (
	"fmt"
	"maps"
	"slices"
)

// diskImage is what a disk may have after a loss of power: the content of its files by their paths. Directories end in a
// slash.
type diskImage map[string]string

// disk is the state of a disk and of the cache above it.
type disk map[int]*inode

// inode is a file or directory: what is durable, and the changes after that.
type inode struct {
	isDir   bool
	data    []byte
	names   map[string]int
	changes []diskOp
}

// add takes a change into the cache; a sync makes the changes of an inode durable, and a mark changes nothing.
func (d disk) add(op diskOp) {
	switch op.Kind {
	case "mark":
	case "sync":
		n := d[op.Node]
		*n = *n.after(len(n.changes), nil)
	case "write", "truncate":
		n := d[op.Node]
		n.changes = append(n.changes, op)
	case "create", "mkdir":
		d[op.Node] = &inode{isDir: op.Kind == "mkdir", names: map[string]int{}}
		fallthrough
	default:
		if op.New != "" && op.Dir != op.To {
			panic("a rename between directories: package storage/dir tests them, this model does not have them")
		}
		n := d[op.Dir]
		n.changes = append(n.changes, op)
	}
}

// after is a file or directory after the first so many changes, and after a last one that is not whole.
func (n *inode) after(changes int, last *diskOp) *inode {
	now := &inode{isDir: n.isDir, data: slices.Clone(n.data), names: maps.Clone(n.names)}
	for _, op := range n.changes[:changes] {
		now.apply(op)
	}
	if last != nil {
		now.apply(*last)
	}
	return now
}

// apply does a change to the inode.
func (n *inode) apply(op diskOp) {
	switch op.Kind {
	case "truncate":
		n.data = resized(n.data, op.Size)
	case "write":
		end := op.Off + int64(len(op.Data))
		n.data = resized(n.data, max(int64(len(n.data)), end))
		copy(n.data[op.Off:], op.Data)
	case "create", "mkdir", "link":
		n.names[op.Name] = op.Node
	case "unlink":
		delete(n.names, op.Name)
	case "rename":
		n.names[op.New] = n.names[op.Name]
		delete(n.names, op.Name)
	case "exchange":
		n.names[op.Name], n.names[op.New] = n.names[op.New], n.names[op.Name]
	}
}

// resized returns data with another size: without its end, or with zeros behind it.
func resized(data []byte, size int64) []byte {
	missing := size - int64(len(data))
	if missing <= 0 {
		return data[:size]
	}
	return append(data, make([]byte, missing)...)
}

// choice is how many changes of each inode have reached the disk. One that is not in it has none there.
type choice map[*inode]int

// image returns the disk with a choice, and of the inode torn, nil for none, a part of its next write.
func (d disk) image(c choice, torn *inode, part *diskOp) diskImage {
	image := diskImage{}
	var walk func(n *inode, dir string)
	walk = func(n *inode, dir string) { // dir ends in a slash, or is "" for the root
		for name, number := range n.after(c[n], nil).names {
			path := dir + name
			child := d[number]
			switch {
			case child.isDir:
				image[path+"/"] = ""
				walk(child, path+"/")
			case child == torn:
				image[path] = string(child.after(c[child], part).data)
			default:
				image[path] = string(child.after(c[child], nil).data)
			}
		}
	}
	walk(d[0], "")
	return image
}

// chosen returns the choice of all changes of some inodes.
func (d disk) chosen(isChosen func(n *inode) bool) choice {
	c := choice{}
	for _, n := range d {
		if isChosen(n) {
			c[n] = len(n.changes)
		}
	}
	return c
}

// images are the states that a loss of power at this moment could leave. They are not all that are possible, but for
// each file and each directory every number of changes that may have reached it, with all and with nothing of the
// rest.
func (d disk) images() (images []diskImage) {
	add := func(torn *inode, part *diskOp, c choice) { images = append(images, d.image(c, torn, part)) }
	for _, rest := range []bool{false, true} {
		add(nil, nil, d.chosen(func(*inode) bool { return rest }))
		add(nil, nil, d.chosen(func(n *inode) bool { return n.isDir == rest }))
		for _, one := range d {
			for i, op := range one.changes {
				upTo := d.chosen(func(*inode) bool { return rest })
				upTo[one] = i
				add(nil, nil, upTo)
				for _, part := range parts(op) {
					add(one, &part, upTo)
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
	if op.Kind != "write" || len(op.Data) < 2 {
		return nil
	}
	isFirstSector := op.Off == 0 && len(op.Data) <= sector
	if isFirstSector {
		return nil
	}
	zeros := op
	half := op
	zeros.Data = make([]byte, len(op.Data))
	half.Data = op.Data[:len(op.Data)/2]
	return []diskOp{zeros, half}
}

// eachLoss calls f for the states that a loss of power after each change of a record could leave, a kill among them, with
// the marks before it. A state with the same marks comes once.
func eachLoss(ops []diskOp, f func(step int, marks []string, image diskImage)) {
	d := disk{0: {isDir: true, names: map[string]int{}}}
	var marks []string
	seen := map[string]bool{}
	for step, op := range ops {
		d.add(op)
		if op.Kind == "mark" {
			marks = append(marks, op.Name)
			clear(seen)
		}
		if len(marks) == 0 {
			continue // what was there before
		}
		for _, image := range d.images() {
			key := fmt.Sprintf("%q", image)
			if !seen[key] {
				seen[key] = true
				f(step, marks, image)
			}
		}
	}
}

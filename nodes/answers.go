package nodes

// answers are what writes to a control file produced and nobody has read yet. Reads get them in order, wherever the
// position of the open file is. Programs that read more than they want (the shells' read, head) go
// back by lseek: what was read last is given back where the next read or write begins within it.
type answers struct {
	unread []byte
	last   []byte // what was read last
	at     int64  // the offset at which it was read
}

// add adds an answer.
func (a *answers) add(line string) { a.unread = append(append(a.unread, line...), '\n') }

// back takes back what lies behind an offset of what was read last.
func (a *answers) back(off int64) {
	if off >= a.at && off < a.at+int64(len(a.last)) {
		a.unread = append(a.last[off-a.at:len(a.last):len(a.last)], a.unread...)
	}
	a.last = nil
}

// read fills dest and returns how many bytes there were.
func (a *answers) read(dest []byte, off int64) int {
	a.back(off)
	n := copy(dest, a.unread)
	a.last, a.at = a.unread[:n:n], off
	a.unread = a.unread[n:]
	return n
}

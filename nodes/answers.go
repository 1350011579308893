package nodes

// answers are the results of writes to a control file that have not been read yet. Reads return them in order, whatever
// the offset. Programs that read more than they need (the shells' read, head) seek back: if the next read or write
// begins within what was read last, the rest of that is unread again.
type answers struct {
	unread []byte
	last   []byte // what was read last
	at     int64  // the offset at which it was read
}

// add adds an answer.
func (a *answers) add(line string) { a.unread = append(append(a.unread, line...), '\n') }

// back makes unread what was read last, from an offset on.
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

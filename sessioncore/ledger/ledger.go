package ledger

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage"
)

const (
	// maxFile bounds the file, in bytes: the charges of a million answers.
	maxFile = 64 << 20
	// maxIdle is after how many days without a look the charges of a session are forgotten.
	maxIdle = 30
	// worthwhile is how many bytes of sessions it must save to read, at least, before the file is written.
	worthwhile = 1 << 20
	// title begins the file. Behind it is a row of the maker, then one of each session.
	title = "sessionfs charges 1\n"
	// dirMode is the mode of the file's directory, which only its owner may read.
	dirMode = 0o700
)

// Book is the file of a user. The nil Book keeps nothing. It is safe for concurrent use.
type Book struct {
	path  string
	maker string

	mu       sync.Mutex // guards the fields below
	sessions map[sessionKey]keptSession
	saved    int64 // bytes of the file on disk
	unsaved  int64 // bytes of the sessions whose charges that lacks
}

// sessionKey names a session while its file is there. A file may have several, such as those of subagents.
type sessionKey struct {
	device, inode uint64 // of the file
	name          uint64 // a hash of the session's name
}

// keyOf returns the key of a session with a name in a file with a token. It does not depend on the file's state.
func keyOf(name string, of storage.Token) sessionKey {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, name)
	return sessionKey{
		device: of.Device,
		inode:  of.Inode,
		name:   hash.Sum64(),
	}
}

// keptSession has the charges of a session.
type keptSession struct {
	modified, changed int64 // those of the token of the session's file
	used              int64 // the day of the last look
	charges           []byte
}

// Open reads the file at a path. maker names all that charges depend on besides the sessions: the program and
// the time zone. The charges of another maker are not used. Of a file that is damaged, the rows before the
// damage are; one that cannot be read, or that another user may have written, is as an empty one.
func Open(path, maker string) *Book {
	b := &Book{
		path:     path,
		maker:    maker,
		sessions: map[sessionKey]keptSession{},
	}
	text, err := readOwn(path)
	if err != nil {
		return b
	}
	b.saved = int64(len(text))
	d := decoder{text: text}
	isOurs := string(d.bytes(len(title))) == title && string(d.row()) == maker
	for isOurs && len(d.text) > 0 {
		b.addRow(d.row()) // which ends the text if the row is bad
	}
	return b
}

// errNotOurs means that another user may have written the file.
var errNotOurs = errors.New("the file is not this user's alone")

// readOwn reads a file that only this user can write.
func readOwn(path string) ([]byte, error) {
	file, info, err := storage.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if !storage.IsOwn(info) || info.Mode().Perm() != storage.FileMode {
		return nil, errNotOurs
	}
	return storage.ReadOpened(file, maxFile)
}

// addRow adds a row of the file, as write makes it, unless it is bad or was not in use for maxIdle days.
func (b *Book) addRow(text []byte) {
	d := decoder{text: text}
	of := sessionKey{
		device: d.uvarint(),
		inode:  d.uvarint(),
		name:   d.uvarint(),
	}
	kept := keptSession{
		modified: d.varint(),
		changed:  d.varint(),
		used:     d.varint(),
	}
	kept.charges = d.text
	if !d.isBad && kept.used+maxIdle >= today() {
		b.sessions[of] = kept
	}
}

// Charge gives a ledger the charges of a session with a name, which no other session in its file has, as the
// session's own Charge does. Where the book has them for the state that a token names, which was taken before
// the session was opened, the session is not read. isWhole is false if the charges tell only a part of the
// session's usages.
func (b *Book) Charge(
	ctx context.Context, name string, of storage.Token, session agents.Charging, to agents.Ledger,
) (isWhole bool, err error) {
	if b == nil {
		return session.Charge(ctx, to)
	}
	isKnown := b.replay(name, of, to)
	if isKnown {
		return true, nil
	}
	readAt := time.Now()
	r := recorder{to: to}
	isWhole, err = session.Charge(ctx, &r)
	isFile := of.Device != 0 // not a row of a database, or a file in an archive
	isLasting := isFile && !of.Racy(readAt.UnixNano())
	if err == nil && isWhole && isLasting && !r.hasMoney {
		b.keep(name, of, r.text)
	}
	return isWhole, err
}

// replay gives a ledger the charges of a session in the state of a token, and reports whether the book has them.
// If it returns false, the ledger may have some, so that the caller must begin anew.
func (b *Book) replay(name string, of storage.Token, to agents.Ledger) (isKnown bool) {
	charges, isKnown := b.find(name, of)
	if !isKnown {
		return false
	}
	to.Begin()
	d := decoder{text: charges}
	var c agents.Charge
	for len(d.text) > 0 {
		d.charge(&c)
		if d.isBad {
			return false
		}
		to.Charge(&c)
	}
	return true
}

// find returns the charges of a session in the state of a token, and notes that they are in use.
func (b *Book) find(name string, of storage.Token) (charges []byte, isKnown bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := keyOf(name, of)
	known, isThere := b.sessions[at]
	if !isThere || known.modified != of.Modified || known.changed != of.Changed {
		return nil, false
	}
	known.used = today()
	b.sessions[at] = known
	return known.charges, true
}

// keep keeps the charges of a session in the state of a token. The book owns charges then.
func (b *Book) keep(name string, of storage.Token, charges []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions[keyOf(name, of)] = keptSession{
		modified: of.Modified,
		changed:  of.Changed,
		used:     today(),
		charges:  charges,
	}
	b.unsaved += of.Size
}

// Save writes the file, and makes its directory, unless that takes longer than a later bill takes to read the
// sessions again: new sessions then have fewer bytes than the file. If another command writes
// the file, nothing is done.
func (b *Book) Save() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unsaved < max(worthwhile, b.saved) {
		return nil
	}
	dir := filepath.Dir(b.path)
	err := os.MkdirAll(dir, dirMode)
	if err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || !storage.IsOwn(info) {
		return &fs.PathError{Op: "write", Path: b.path, Err: errNotOurs}
	}
	size, err := b.replace()
	if err != nil {
		return err
	}
	if size > 0 { // and no other command was writing
		b.saved = size
		b.unsaved = 0
	}
	return nil
}

// replace writes the file beside the old one, and renames it. No crash can tear it; after one of the machine it
// may be damaged, which the sums of its rows tell. While another command writes the file nothing is done, and
// size is 0. Callers must hold b.mu.
func (b *Book) replace() (size int64, err error) {
	temporary := b.path + ".new"
	made, err := createOwn(temporary)
	if errors.Is(err, fs.ErrExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	out := bufio.NewWriter(made)
	size = b.write(out)
	err = errors.Join(out.Flush(), made.Close())
	if err == nil {
		err = os.Rename(temporary, b.path)
	}
	if err != nil {
		_ = os.Remove(temporary)
	}
	return size, err
}

// abandoned is the age of a new file that no writer still writes: it was killed.
const abandoned = time.Minute

// createOwn creates a file. The error is fs.ErrExist if another command writes it; one that a killed command left
// is removed before.
func createOwn(path string) (*os.File, error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	made, err := os.OpenFile(path, flags, storage.FileMode)
	if !errors.Is(err, fs.ErrExist) {
		return made, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if time.Since(info.ModTime()) < abandoned {
		return nil, fs.ErrExist
	}
	err = os.Remove(path)
	if err != nil {
		return nil, err
	}
	return os.OpenFile(path, flags, storage.FileMode)
}

// write writes the title, the maker and as many sessions as maxFile has room for, in no order, and returns their
// size in bytes. out.Flush has the errors. Callers must hold b.mu.
func (b *Book) write(out *bufio.Writer) (size int64) {
	text := appendRow([]byte(title), []byte(b.maker))
	_, _ = out.Write(text)
	size = int64(len(text))
	var framed []byte
	for of, kept := range b.sessions {
		text = binary.AppendUvarint(text[:0], of.device)
		text = binary.AppendUvarint(text, of.inode)
		text = binary.AppendUvarint(text, of.name)
		text = binary.AppendVarint(text, kept.modified)
		text = binary.AppendVarint(text, kept.changed)
		text = binary.AppendVarint(text, kept.used)
		text = append(text, kept.charges...)
		framed = appendRow(framed[:0], text)
		if size+int64(len(framed)) > maxFile {
			continue
		}
		size += int64(len(framed))
		_, _ = out.Write(framed)
	}
	return size
}

// castagnoli is the table of the sums of rows.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendRow appends a row: its size, its CRC-32C, and itself.
func appendRow(dst, row []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(row)))
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(row, castagnoli))
	return append(dst, row...)
}

// today returns the number of the day, since the epoch.
func today() int64 { return time.Now().Unix() / (24 * 60 * 60) }

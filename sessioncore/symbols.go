package sessioncore

import (
	"hash/maphash"
	"sync/atomic"
)

// symbol is a number for a distinct text of a session, 0 for none. Entry ids, parentIds and label targets share the
// table, so that each text is stored once.
type symbol uint32

// symbolInfo is a symbol's text in the arena, and the last entry with it as its id.
type symbolInfo struct {
	off, length uint32
	// last is 1 + the number of the newest entry with this id, 0 for none. It is written by the one indexer and
	// read by readers of older snapshots, which ignore entries beyond theirs.
	last uint32
}

// symbolTable is append-only: what a snapshot saw does not move, so readers of older snapshots continue while the
// indexer adds. There is one indexer at a time; readers take no lock.
type symbolTable struct {
	arena   []byte
	symbols []symbolInfo // symbols[0] is unused
	slots   []uint32     // open addressing; a symbol or 0
}

// hashSeed is random in each process, so that no file can be made to have collisions.
var hashSeed = maphash.MakeSeed()

const firstSlots = 64

func newSymbolTable() symbolTable {
	return symbolTable{symbols: make([]symbolInfo, 1), slots: make([]uint32, firstSlots)}
}

// text returns a symbol's text. Callers must not modify it.
func (t *symbolTable) text(s symbol) []byte {
	info := &t.symbols[s]
	return t.arena[info.off : info.off+info.length]
}

// find returns the symbol of a text, or 0.
func (t *symbolTable) find(text []byte) symbol {
	mask := uint64(len(t.slots) - 1)
	for at := maphash.Bytes(hashSeed, text) & mask; ; at = (at + 1) & mask {
		s := atomic.LoadUint32(&t.slots[at])
		if s == 0 {
			return 0
		}
		// A snapshot's view may be older than the slots that it shares: newer symbols do not belong to it.
		if int(s) < len(t.symbols) && string(t.text(symbol(s))) == string(text) {
			return symbol(s)
		}
	}
}

// intern returns the symbol of a text, adding it if necessary.
func (t *symbolTable) intern(text []byte) symbol {
	if s := t.find(text); s != 0 {
		return s
	}
	if (len(t.symbols)+1)*2 > len(t.slots) {
		t.grow()
	}
	s := symbol(len(t.symbols))
	t.symbols = append(t.symbols, symbolInfo{off: uint32(len(t.arena)), length: uint32(len(text))})
	t.arena = append(t.arena, text...)
	t.place(s)
	return s
}

// place adds a symbol to the slots.
func (t *symbolTable) place(s symbol) {
	mask := uint64(len(t.slots) - 1)
	at := maphash.Bytes(hashSeed, t.text(s)) & mask
	for t.slots[at] != 0 {
		at = (at + 1) & mask
	}
	atomic.StoreUint32(&t.slots[at], uint32(s))
}

// grow allocates new slots. Older snapshots keep the old ones, which have all of their symbols.
func (t *symbolTable) grow() {
	t.slots = make([]uint32, 2*len(t.slots))
	for s := 1; s < len(t.symbols); s++ {
		t.place(symbol(s))
	}
}

// maxArena is the maximum total size of texts in bytes: offsets into the arena have 32 bits. A file with more is
// not indexed.
const maxArena = 1 << 31

// full reports whether no more text may be added.
func (t *symbolTable) full() bool { return len(t.arena) > maxArena }

package access

import (
	"encoding/binary"
	"errors"
)

// Rights are permission bits, as in one digit of a mode.
type Rights uint32

// The rights. Search is that of a directory.
const (
	Search Rights = 1
	Write  Rights = 2
	Read   Rights = 4
)

// object is what decides about access to a file.
type object struct {
	mode     uint32
	uid, gid uint32
	acl      []aclEntry // nil if the mode is all
}

// may reports whether the caller has all of the rights, as acl_permission_check in the kernel does.
func (o *object) may(c *Caller, want Rights) bool {
	group, other := Rights(o.mode>>3&7), Rights(o.mode&7)
	switch {
	case c.UID == o.uid:
		return Rights(o.mode >> 6).has(want)
	case o.acl != nil && group != 0: // without group bits, which are the mask, the kernel asks no list
		return o.listGrants(c, want)
	case c.in(o.gid):
		return group.has(want)
	case c.Unsure:
		return (group & other).has(want)
	}
	return other.has(want)
}

func (r Rights) has(want Rights) bool { return r&want == want }

// Tags of an access control list (acl(5)).
const (
	aclUserObj  = 0x01
	aclUser     = 0x02
	aclGroupObj = 0x04
	aclGroup    = 0x08
	aclMask     = 0x10
	aclOther    = 0x20
)

type aclEntry struct {
	tag    uint16
	rights Rights
	id     uint32
}

// listGrants is may by the list, for a caller who is not the owner (acl(5), "Access check algorithm").
func (o *object) listGrants(c *Caller, want Rights) bool {
	mask, other := Rights(7), Rights(0)
	for _, e := range o.acl {
		switch e.tag {
		case aclMask:
			mask = e.rights
		case aclOther:
			other = e.rights
		}
	}
	member, granted, denied := false, false, false
	for _, e := range o.acl {
		switch id := e.id; e.tag {
		case aclUser:
			if id == c.UID {
				return (e.rights & mask).has(want)
			}
		case aclGroupObj, aclGroup:
			if e.tag == aclGroupObj {
				id = o.gid
			}
			grants := (e.rights & mask).has(want)
			denied = denied || !grants
			if c.in(id) {
				member, granted = true, granted || grants
			}
		}
	}
	switch {
	case granted:
		return true // one group that grants is enough
	case member:
		return false
	case c.Unsure && denied:
		return false
	}
	return other.has(want)
}

// errACL means an access control list that this program does not understand.
var errACL = errors.New("an access control list that is not understood")

const aclVersion = 2

// parseACL parses the extended attribute system.posix_acl_access.
func parseACL(text []byte) ([]aclEntry, error) {
	if len(text) < 4 || len(text)%8 != 4 || binary.LittleEndian.Uint32(text) != aclVersion {
		return nil, errACL
	}
	entries := make([]aclEntry, 0, len(text)/8)
	for text = text[4:]; len(text) > 0; text = text[8:] {
		e := aclEntry{binary.LittleEndian.Uint16(text), Rights(binary.LittleEndian.Uint16(text[2:])), binary.LittleEndian.Uint32(text[4:])}
		switch e.tag {
		case aclUserObj, aclUser, aclGroupObj, aclGroup, aclMask, aclOther:
		default:
			return nil, errACL
		}
		if e.rights&^7 != 0 {
			return nil, errACL
		}
		entries = append(entries, e)
	}
	return entries, nil
}

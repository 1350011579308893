package nfs

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A credential of AUTH_SYS is only claimed. The kernel however knows the owner of the socket at the
// other end of a connection on this machine. Its local address is our remote one, and its remote
// address is our local one.

var (
	errNotTCP    = errors.New("it is not one of TCP")
	errNotOpen   = errors.New("its other end is closed")
	errNoAnswer  = errors.New("the kernel gave no answer about a socket")
	errNotATable = errors.New("a line is not as expected")
)

// socket is the kernel's record of one.
type socket struct {
	state uint8
	uid   uint32
	inode uint64 // 0 if no process has it open any more; the kernel may tell 0 for uid then
}

// established is the state of a TCP socket while both ends are open.
const established = 1

// socketOwners asks the kernel for the owners of sockets.
type socketOwners struct {
	netlink  int      // a socket of NETLINK_SOCK_DIAG; -1 where the kernel does not answer there
	sequence uint32   // of the last question
	tables   []string // are read where the kernel does not answer
}

// openSocketOwners returns socketOwners for the connections of a listener. One that is not told by
// netlink shows that the kernel has no answers there, as a confined process may see it.
func openSocketOwners(listener net.Addr) *socketOwners {
	o := &socketOwners{netlink: -1, tables: []string{"/proc/net/tcp", "/proc/net/tcp6"}}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return o
	}
	o.netlink = fd
	anyRemote := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	found, err := o.ask(ends{local: addressOf(listener), remote: anyRemote})
	if err != nil || len(found) != 1 {
		o.close()
	}
	return o
}

// close ends the use of netlink.
func (o *socketOwners) close() {
	if o.netlink >= 0 {
		unix.Close(o.netlink)
		o.netlink = -1
	}
}

// ends are the addresses of a socket.
type ends struct{ local, remote netip.AddrPort }

// check returns an error for each connection unless its other end is open, and a socket of root or a
// user. All are looked up at once, as to read a table takes long.
func (o *socketOwners) check(connections []net.Conn, user uint32) []error {
	peers := make([]ends, len(connections))
	for i, c := range connections {
		peers[i] = ends{local: addressOf(c.RemoteAddr()), remote: addressOf(c.LocalAddr())}
	}
	found, err := o.find(peers)
	refused := make([]error, len(connections))
	for i, c := range connections {
		refused[i] = err
		if err == nil {
			refused[i] = checkPeer(c, found[peers[i]], user)
		}
	}
	return refused
}

// checkPeer returns an error unless exactly one socket is at the other end of a connection, and is
// open, and root's or a user's.
func checkPeer(c net.Conn, found []socket, user uint32) error {
	if len(found) != 1 {
		return fmt.Errorf("its other end is one of %d sockets", len(found))
	}
	peer := found[0]
	if peer.state != established || peer.inode == 0 {
		return errNotOpen
	}
	if peer.uid != 0 && peer.uid != user {
		return fmt.Errorf("it is one of user %d", peer.uid)
	}
	// Once a connection is reset, another user's may have its address.
	return checkEstablished(c)
}

// addressOf returns the address of one end of a connection; an IPv4 one is never a mapped one.
func addressOf(a net.Addr) netip.AddrPort {
	at, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	port := at.AddrPort()
	return netip.AddrPortFrom(port.Addr().Unmap(), port.Port())
}

// checkEstablished returns an error unless our end of a connection has seen no end of it.
func checkEstablished(c net.Conn) error {
	conn, ok := c.(syscall.Conn)
	if !ok {
		return errNotTCP
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var info *unix.TCPInfo
	var infoErr error
	err = raw.Control(func(fd uintptr) {
		info, infoErr = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	err = errors.Join(err, infoErr)
	if err != nil {
		return err
	}
	if info.State != established {
		return errNotOpen
	}
	return nil
}

// find returns the sockets with addresses of IPv4, by netlink, or where that fails from the tables.
func (o *socketOwners) find(wanted []ends) (map[ends][]socket, error) {
	found := map[ends][]socket{}
	if o.netlink < 0 {
		return found, o.readTables(wanted, found)
	}
	for _, e := range wanted {
		answer, err := o.ask(e)
		if err != nil { // the tables are read for all
			clear(found)
			return found, o.readTables(wanted, found)
		}
		found[e] = answer
	}
	return found, nil
}

// diagID is inet_diag_sockid of linux/inet_diag.h. The addresses are in network order, and
// those of IPv4 fill the first four bytes.
type diagID struct {
	LocalPort, RemotePort [2]byte
	Local, Remote         [16]byte
	Interface             uint32
	Cookie                [2]uint32
}

// diagRequest is nlmsghdr and inet_diag_req_v2.
type diagRequest struct {
	Length           uint32
	Type, Flags      uint16
	Sequence, Port   uint32
	Family, Protocol uint8
	_                [2]uint8
	States           uint32
	ID               diagID
}

// diagReply is nlmsghdr and inet_diag_msg.
type diagReply struct {
	Length         uint32
	Type, Flags    uint16
	Sequence, Port uint32
	Family, State  uint8
	_              [2]uint8
	ID             diagID
	_              [3]uint32
	UID, Inode     uint32
}

// ask asks by netlink for the socket with addresses of IPv4. The kernel looks into its table of
// hashes, and finds sockets of IPv6 with mapped addresses, too.
func (o *socketOwners) ask(e ends) ([]socket, error) {
	err := o.send(e)
	if err != nil {
		return nil, err
	}
	return o.receive()
}

// send sends the question of ask.
func (o *socketOwners) send(e ends) error {
	o.sequence++
	const anyCookie, anyState = 1<<32 - 1, 1<<32 - 1
	q := diagRequest{
		Type:     unix.SOCK_DIAG_BY_FAMILY,
		Flags:    unix.NLM_F_REQUEST,
		Sequence: o.sequence,
		Family:   unix.AF_INET,
		Protocol: unix.IPPROTO_TCP,
		States:   anyState,
	}
	q.Length = uint32(binary.Size(q))
	q.ID.Cookie = [2]uint32{anyCookie, anyCookie}
	binary.BigEndian.PutUint16(q.ID.LocalPort[:], e.local.Port())
	binary.BigEndian.PutUint16(q.ID.RemotePort[:], e.remote.Port())
	copy(q.ID.Local[:], e.local.Addr().AsSlice())
	copy(q.ID.Remote[:], e.remote.Addr().AsSlice())
	message, err := binary.Append(nil, binary.NativeEndian, q)
	if err != nil {
		return err
	}
	return unix.Sendto(o.netlink, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// receive reads the answer to the last question, which is there as soon as that is sent. It skips late answers
// to earlier ones.
func (o *socketOwners) receive() ([]socket, error) {
	const sequenceAt = 8 // in nlmsghdr
	buf := make([]byte, 4096)
	for {
		n, from, err := unix.Recvfrom(o.netlink, buf, unix.MSG_DONTWAIT)
		if err != nil {
			return nil, err
		}
		sender, ok := from.(*unix.SockaddrNetlink)
		isKernel := ok && sender.Pid == 0
		if !isKernel || n < unix.SizeofNlMsghdr {
			continue
		}
		sequence := binary.NativeEndian.Uint32(buf[sequenceAt:])
		if sequence == o.sequence {
			return parseReply(buf[:n])
		}
	}
}

// parseReply returns the socket of an answer, none if there is no such socket. The message has a whole
// nlmsghdr.
func parseReply(message []byte) ([]socket, error) {
	const typeAt = 4 // in nlmsghdr
	messageType := binary.NativeEndian.Uint16(message[typeAt:])
	if messageType == unix.NLMSG_ERROR {
		return nil, parseError(message)
	}
	var r diagReply
	_, err := binary.Decode(message, binary.NativeEndian, &r)
	if err != nil || r.Type != unix.SOCK_DIAG_BY_FAMILY {
		return nil, errNoAnswer
	}
	return []socket{{state: r.State, uid: r.UID, inode: uint64(r.Inode)}}, nil
}

// parseError returns the error of an answer of the type NLMSG_ERROR: nil if there is no such socket. Behind the
// header is the errno as a negative number.
func parseError(message []byte) error {
	body := message[unix.SizeofNlMsghdr:]
	if len(body) < 4 {
		return errNoAnswer
	}
	negative := int32(binary.NativeEndian.Uint32(body))
	errno := syscall.Errno(-negative)
	if errno == unix.ENOENT {
		return nil
	}
	return fmt.Errorf("%w: %w", errNoAnswer, errno)
}

// readTables adds the sockets with addresses of IPv4 that the kernel's tables have to found. The second table,
// for IPv6, has sockets with mapped addresses, and is missing where there is no IPv6.
func (o *socketOwners) readTables(wanted []ends, found map[ends][]socket) error {
	columns := map[string]ends{}
	for _, e := range wanted {
		asMapped := ends{local: mapped(e.local), remote: mapped(e.remote)}
		columns[e.columns()] = e
		columns[asMapped.columns()] = e
	}
	for i, name := range o.tables {
		err := readTable(name, columns, found)
		isMissing := i > 0 && errors.Is(err, fs.ErrNotExist)
		if err != nil && !isMissing {
			return err
		}
	}
	return nil
}

// readTable adds the sockets of a table with wanted columns of addresses to found. The heading has no such
// columns.
func readTable(name string, wanted map[string]ends, found map[ends][]socket) error {
	table, err := os.Open(name)
	if err != nil {
		return err
	}
	defer table.Close()
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		_, columns, _ := strings.Cut(lines.Text(), ": ")
		local, columns, _ := strings.Cut(columns, " ")
		remote, columns, _ := strings.Cut(columns, " ")
		e, isWanted := wanted[local+" "+remote]
		if !isWanted {
			continue
		}
		s, err := parseColumns(columns)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		found[e] = append(found[e], s)
	}
	return lines.Err()
}

// columns returns the columns of a socket's addresses in a table.
func (e ends) columns() string { return tableColumn(e.local) + " " + tableColumn(e.remote) }

// mapped returns an address of IPv4 as one of IPv6.
func mapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
}

// tableColumn returns an address as a table has it: in words of this machine's order of bytes.
func tableColumn(a netip.AddrPort) (text string) {
	for word := range slices.Chunk(a.Addr().AsSlice(), 4) {
		text += fmt.Sprintf("%08X", binary.NativeEndian.Uint32(word))
	}
	return text + fmt.Sprintf(":%04X", a.Port())
}

// parseColumns decodes the columns behind the addresses: the state, the queues, the timer, how often
// something was sent again, the user, the timeout and the inode.
func parseColumns(columns string) (s socket, err error) {
	const (
		stateColumn = 0
		userColumn  = 4
		inodeColumn = 6
	)
	fields := strings.Fields(columns)
	if len(fields) <= inodeColumn {
		return s, errNotATable
	}
	state, stateErr := strconv.ParseUint(fields[stateColumn], 16, 8)
	uid, uidErr := strconv.ParseUint(fields[userColumn], 10, 32)
	inode, inodeErr := strconv.ParseUint(fields[inodeColumn], 10, 64)
	s = socket{state: uint8(state), uid: uint32(uid), inode: inode}
	return s, errors.Join(stateErr, uidErr, inodeErr)
}

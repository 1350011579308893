// Package nfs is the door for NFSv3 clients: it answers them from the nodes of a mount, over TCP,
// without FUSE.
//
// Protocols: ONC RPC with record marking (RFC 5531), XDR (RFC 4506), NFS version 3 and its MOUNT
// protocol (RFC 1813). All run on one port. docs/design.md section 8 says what clients see.
//
// The methods of request panic with a failure, the reply, where a request fails.
package nfs

// Package clients detects live clients: programs that have a session open and do not take the
// client's lock (docs/design.md section 4). [Clients] detects them by the breadcrumbs of terminals
// together with the agent's databases, [Leases] by the leases of newer clients, [Writing] by their
// descriptors.
//
// The package never opens a session file, takes a lock, or binds a socket. It reports clients that
// it cannot see as absent.
package clients

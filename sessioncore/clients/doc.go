// Package clients detects live clients: programs that have a session open and do not take the client's lock
// (docs/design.md section 4). [Clients] detects them by the breadcrumbs of terminals together with the agent's
// databases, [Leases] by the leases of newer clients, [Writing] by their descriptors.
//
// The package only looks: it never opens a session file, takes a lock, or binds a socket. What it cannot see it
// reports as absent.
package clients

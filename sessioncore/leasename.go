package sessioncore

const (
	// maxLeaseName is how long an id is at most that names its lease.
	maxLeaseName = 128
	// maxLeaseText is how long such an id is at most as JSON, escaped throughout.
	maxLeaseText = 6*maxLeaseName + 2
)

// isLeaseName reports whether the client names the lease of an id by the id itself. For other ids it takes a hash of the
// id; those leases are not looked for.
func isLeaseName(id string) bool {
	if id == "" || len(id) > maxLeaseName {
		return false
	}
	for _, b := range []byte(id) {
		switch {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '_', b == '-':
		default:
			return false
		}
	}
	return true
}

// LeaseName returns the name of the lease that a client of the session holds, "" where it is not one that can be looked
// for.
func (s *Snapshot) LeaseName() string { return s.header.leaseName }

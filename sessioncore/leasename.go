package sessioncore

const (
	// maxLeaseName is the maximum length of an id that is the name of its lease.
	maxLeaseName = 128
	// maxLeaseText is the maximum length of such an id as JSON, if every character is escaped.
	maxLeaseText = 6*maxLeaseName + 2
)

// isLeaseName reports whether the client uses an id itself as the name of its lease. For other ids it uses a hash
// of the id; those leases are not looked for.
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

// LeaseName returns the name of the lease that a client of the session holds, "" if the name is not known.
func (s *Snapshot) LeaseName() string { return s.header.leaseName }

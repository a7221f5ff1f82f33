package httptarget

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"syscall"
)

// errRefused names no address: what a name resolves to inside a private
// network is not the caller's to learn.
var errRefused = errors.New("address refused: private or reserved network; start with --allow-private to call it")

// guard decides which addresses may be dialed. It looks at the address that is
// about to be connected to, after the name was resolved, so that a name which
// resolves to something else the second time gains nothing.
type guard struct {
	allowAll bool
	allow    []netip.Prefix
}

// control is a net.Dialer's Control. It sees every address of every dial,
// those of redirects too.
func (g guard) control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || !g.allows(ap.Addr()) {
		return errRefused
	}
	return nil
}

func (g guard) allows(ip netip.Addr) bool {
	if g.allowAll {
		return true
	}
	ip = ip.Unmap().WithZone("")
	for _, p := range g.allow {
		if p.Contains(ip) {
			return true
		}
	}
	return isPublic(ip)
}

// isPublic reports whether ip belongs to the public internet. IPv6 is judged by
// what is allowed and IPv4 by what is not, as the two are handed out.
func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap()
	if ip.Is4() {
		return !contains(notPublic4(), ip)
	}
	b := ip.As16()
	switch {
	case prefix("64:ff9b::/96").Contains(ip): // NAT64: the last four bytes are dialed
		return isPublic(netip.AddrFrom4([4]byte(b[12:16])))
	case prefix("2002::/16").Contains(ip): // 6to4: the next four bytes are dialed
		return isPublic(netip.AddrFrom4([4]byte(b[2:6])))
	case binary.BigEndian.Uint32(b[8:12])&^(1<<25|1<<24) == 0x00005efe: // ISATAP: the last four bytes
		return false
	}
	return prefix("2000::/3").Contains(ip) && !contains(notPublic6(), ip)
}

// notPublic4 is the special-purpose registry of IPv4 (RFC 6890 and followers)
// and one public address that clouds answer inside their hosts.
func notPublic4() []netip.Prefix {
	return []netip.Prefix{
		prefix("0.0.0.0/8"),        // this network, unspecified
		prefix("10.0.0.0/8"),       // private
		prefix("100.64.0.0/10"),    // carrier-grade NAT; a cloud's metadata at 100.100.100.200
		prefix("127.0.0.0/8"),      // loopback
		prefix("168.63.129.16/32"), // Azure's host agent
		prefix("169.254.0.0/16"),   // link-local; metadata at 169.254.169.254
		prefix("172.16.0.0/12"),    // private
		prefix("192.0.0.0/24"),     // protocol assignments; metadata at 192.0.0.192
		prefix("192.0.2.0/24"),     // documentation
		prefix("192.88.99.0/24"),   // 6to4 relays
		prefix("192.168.0.0/16"),   // private
		prefix("198.18.0.0/15"),    // benchmarks
		prefix("198.51.100.0/24"),  // documentation
		prefix("203.0.113.0/24"),   // documentation
		prefix("224.0.0.0/4"),      // multicast
		prefix("240.0.0.0/4"),      // reserved, broadcast
	}
}

// notPublic6 lists what lies inside 2000::/3 and is not public. Loopback,
// link-local, unique local (fd00:ec2::254) and multicast lie outside.
func notPublic6() []netip.Prefix {
	return []netip.Prefix{
		prefix("2001::/23"),     // protocol assignments, Teredo
		prefix("2001:db8::/32"), // documentation
		prefix("3fff::/20"),     // documentation
	}
}

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func contains(prefixes []netip.Prefix, ip netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

package apiserver

import (
	"fmt"
	"net"
	"net/netip"
)

// endpoint returns the address that the server advertises and the port of the first listener. The port is 0 without a
// listener.
func (o Options) endpoint() netip.AddrPort {
	var at netip.AddrPort
	if len(o.Listeners) > 0 {
		if address, ok := o.Listeners[0].Addr().(*net.TCPAddr); ok {
			at = address.AddrPort()
		}
	}
	address := at.Addr()
	if o.AdvertiseAddress.IsValid() {
		address = o.AdvertiseAddress
	}
	return netip.AddrPortFrom(address.Unmap(), at.Port())
}

// minServiceIPs is how many addresses a range of cluster IPs must have.
const minServiceIPs = 8

// checkNetwork returns an error if the range of cluster IPs is too small, or of another family than the address that
// the server advertises.
func (o Options) checkNetwork() error {
	network := o.ServiceClusterIPRange
	if bits := network.Addr().BitLen() - network.Bits(); 1<<min(bits, 8) < minServiceIPs {
		return fmt.Errorf("ServiceClusterIPRange: expected at least %d addresses, got %s", minServiceIPs, network)
	}
	if a := o.AdvertiseAddress; a.IsValid() && a.Unmap().Is4() != network.Addr().Is4() {
		return fmt.Errorf("AdvertiseAddress: expected the family of ServiceClusterIPRange %s, got %s", network, a)
	}
	return nil
}

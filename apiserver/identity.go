package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// identity is the TLS certificate of a server, and the CA that issues its client certificates.
type identity struct {
	roots  []byte // the certificates that clients trust, in PEM
	config *tls.Config

	ca    *x509.Certificate
	caKey *ecdsa.PrivateKey
}

// validity is the lifetime of certificates. Each start of a server creates new certificates.
const validity = 10 * 365 * 24 * time.Hour

// newIdentity creates a CA and, if serving is nil, a server certificate for loopback and for hosts, which are DNS names
// and IP addresses. The server requests client certificates that were issued by this CA or by a CA in clientCAs, which
// may be nil.
func newIdentity(
	now time.Time, hosts []string, serving *tls.Certificate, clientCAs *x509.CertPool,
) (*identity, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	// Clients check certificates by the real clock, which may be behind Options.Now, or ahead of it.
	from := min(now.Unix(), time.Now().Unix())
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tenure-ca"},
		NotBefore: time.Unix(from, 0).Add(-time.Hour), NotAfter: time.Now().Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	if ca, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	i := &identity{ca: ca, caKey: caKey, roots: encodeCertificates(der)}
	if serving == nil {
		leaf := &x509.Certificate{
			Subject: pkix.Name{CommonName: "tenure"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		}
		for _, host := range hosts {
			if ip := net.ParseIP(host); ip != nil {
				leaf.IPAddresses = append(leaf.IPAddresses, ip)
			} else {
				leaf.DNSNames = append(leaf.DNSNames, host)
			}
		}
		serving, err = i.issue(leaf)
		if err != nil {
			return nil, err
		}
	} else {
		i.roots = encodeCertificates(serving.Certificate...)
	}
	if clientCAs == nil {
		clientCAs = x509.NewCertPool()
	} else {
		clientCAs = clientCAs.Clone()
	}
	clientCAs.AddCert(ca)
	i.config = &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{*serving},
		NextProtos:   []string{"h2", "http/1.1"},
		// The authenticator verifies client certificates, so that its error can say what is wrong with a certificate.
		ClientAuth: tls.RequestClientCert, ClientCAs: clientCAs,
	}
	return i, nil
}

// issue returns a new certificate, signed by the CA.
func (i *identity) issue(leaf *x509.Certificate) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if leaf.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return nil, err
	}
	leaf.NotBefore, leaf.NotAfter, leaf.KeyUsage = i.ca.NotBefore, i.ca.NotAfter, x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, leaf, i.ca, &key.PublicKey, i.caKey)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// issueClient returns a client certificate for a user, and its key, both in PEM.
func (i *identity) issueClient(name string, groups []string) (certificate, key []byte, err error) {
	issued, err := i.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(issued.PrivateKey)
	if err != nil {
		return nil, nil, err
	}
	return encodeCertificates(issued.Certificate...), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// encodeCertificates returns certificates in PEM.
func encodeCertificates(all ...[]byte) (out []byte) {
	for _, der := range all {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return out
}

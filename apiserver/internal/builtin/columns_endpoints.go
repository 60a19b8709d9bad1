package builtin

//lint:file-ignore SA1019 Endpoints are deprecated, and served.

import (
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

func endpoints() printer {
	type object = *corev1.Endpoints
	return newPrinter(
		name[object](),
		col("Endpoints", "string", corev1.Endpoints{}.SwaggerDoc()["subsets"], func(e object) any { return addresses(e) }),
		age[object](),
	)
}

// addresses returns address:port for each address and port of all subsets.
func addresses(e *corev1.Endpoints) string {
	if len(e.Subsets) == 0 {
		return none
	}
	var list []string
	for _, s := range e.Subsets {
		for _, p := range s.Ports {
			for _, a := range s.Addresses {
				list = append(list, net.JoinHostPort(a.IP, strconv.Itoa(int(p.Port))))
			}
		}
		if len(s.Ports) > 0 {
			continue
		}
		for _, a := range s.Addresses {
			list = append(list, a.IP)
		}
	}
	return firstFew(list, 3, ",")
}

module github.com/tenure-ssa/tenure/defaults

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	k8s.io/api v0.36.3
	k8s.io/apimachinery v0.36.3
	k8s.io/component-helpers v0.36.3
	sigs.k8s.io/json v0.0.0-20250730193827-2d320260d730
)

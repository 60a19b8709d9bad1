module github.com/tenure-ssa/tenure/apiserver

go 1.26.0

require github.com/tenure-ssa/tenure v0.0.0

replace github.com/tenure-ssa/tenure => ../

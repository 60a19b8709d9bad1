module github.com/tenure-ssa/tenure

go 1.26.0

module kvartet/tests/bindings/bench

go 1.19

require kvartet v0.0.0

replace kvartet => ../../../../bindings/go

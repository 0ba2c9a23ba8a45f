// Package flat is the generated layer over bindings/swig/kvartet_flat.h. Use package kvartet instead.
package flat

// #cgo pkg-config: kvartet
// #cgo CFLAGS: -I${SRCDIR}/../../../../swig
import "C"

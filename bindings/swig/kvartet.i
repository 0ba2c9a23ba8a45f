/* One interface for every language. Go and Java get typemaps; `swig -xml` of the same file feeds rust_sys.py. */
%module kvartet_flat

%{
#include "kvartet_flat.h"
%}

%include <stdint.i>

/* Each pair of a function is one argument of the language: bytes in, or room for bytes out. */
%define KVT_BYTES_IN(name, length)
%apply (const uint8_t* DATA, size_t LEN) { (const uint8_t* name, size_t length) };
%enddef
%define KVT_BYTES_OUT(name, capacity)
%apply (uint8_t* BUF, size_t CAP) { (uint8_t* name, size_t capacity) };
%enddef

#if defined(SWIGGO)
%include "typemaps_go.i"
#elif defined(SWIGJAVA)
%include "typemaps_java.i"
#endif

#if defined(SWIGGO) || defined(SWIGJAVA)
KVT_BYTES_IN(data, len)
KVT_BYTES_IN(options, options_len)
KVT_BYTES_IN(id, id_len)
KVT_BYTES_IN(adapter, adapter_len)
KVT_BYTES_IN(factors, factors_len)
KVT_BYTES_IN(ns, ns_len)
KVT_BYTES_IN(salt, salt_len)
KVT_BYTES_IN(tokens, tokens_len)
KVT_BYTES_IN(extras, extras_len)
KVT_BYTES_IN(name, name_len)
KVT_BYTES_IN(view, view_len)
KVT_BYTES_IN(bases, bases_len)
KVT_BYTES_IN(table, table_len)
KVT_BYTES_IN(spec, spec_len)
KVT_BYTES_IN(key, key_len)
KVT_BYTES_IN(keys, keys_len)
KVT_BYTES_IN(digest, digest_len)
KVT_BYTES_IN(frame, frame_len)
KVT_BYTES_IN(frames, frames_len)
KVT_BYTES_IN(lengths, lengths_len)
KVT_BYTES_IN(url, url_len)
KVT_BYTES_IN(profile, profile_len)
KVT_BYTES_IN(fingerprint, fingerprint_len)
KVT_BYTES_IN(saved, saved_len)
KVT_BYTES_IN(eos, eos_len)
KVT_BYTES_IN(gaps, gaps_len)
KVT_BYTES_IN(alone, alone_len)
KVT_BYTES_IN(batched, batched_len)
KVT_BYTES_IN(widths, widths_len)
KVT_BYTES_IN(places, places_len)
KVT_BYTES_IN(way, way_len)
KVT_BYTES_OUT(buf, cap)
KVT_BYTES_OUT(err, err_cap)
KVT_BYTES_OUT(memory, memory_cap)
KVT_BYTES_OUT(report, report_cap)
KVT_BYTES_OUT(results, results_cap)
KVT_BYTES_OUT(completion, completion_cap)
KVT_BYTES_OUT(frames, frames_cap)
KVT_BYTES_OUT(lengths, lengths_cap)
#endif

%include "flat_constants.h"
%include "kvartet_flat.h"
